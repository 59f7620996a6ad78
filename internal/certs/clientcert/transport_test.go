// SPDX-License-Identifier: Apache-2.0

package clientcert

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
)

// server answers after delay with the serial number of the client's certificate. HTTP/2 is on.
func server(t *testing.T, ca *testpki.Authority, delay time.Duration) *httptest.Server {
	pair, err := tls.LoadX509KeyPair(ca.Issue(t, "server"))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(ca.Cert)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].SerialNumber.String())
	}))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// client returns a client with the certificate in dir. It checks dir every few milliseconds.
func client(t *testing.T, ca *testpki.Authority, dir, host string) *http.Client {
	t.Helper()
	cfg := &rest.Config{Host: host, TLSClientConfig: rest.TLSClientConfig{
		CAData: ca.PEM, CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"),
	}}
	cfg, err := Reloading(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Transport.(*transport).every = 5 * time.Millisecond
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func get(c *http.Client, url string) (string, error) {
	resp, err := c.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func serial(t *testing.T, dir string) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return cert.SerialNumber.String()
}

// await sends requests until the server has seen the certificate in dir.
func await(t *testing.T, c *http.Client, url, dir string) {
	t.Helper()
	for want, deadline := serial(t, dir), time.Now().Add(time.Minute); ; {
		got, err := get(c, url)
		switch {
		case err != nil:
			t.Fatal(err)
		case got == want:
			return
		case time.Now().After(deadline):
			t.Fatalf("the server sees certificate %s, want %s", got, want)
		}
	}
}

// TestSecurityB4RotationsLoseNoRequest replaces the client certificate ten times under load, and no request
// fails.
func TestSecurityB4RotationsLoseNoRequest(t *testing.T) {
	ca, dir := testpki.New(t), t.TempDir()
	ca.IssueInto(t, dir, "client")
	s := server(t, ca, 10*time.Millisecond)
	c := client(t, ca, dir, s.URL)
	var done atomic.Bool
	var load sync.WaitGroup
	defer load.Wait()
	defer done.Store(true)
	for range 4 {
		load.Go(func() {
			for !done.Load() {
				if _, err := get(c, s.URL); err != nil {
					t.Errorf("request: %v", err)
					return
				}
			}
		})
	}
	for range 10 {
		ca.IssueInto(t, dir, "client")
		await(t, c, s.URL, dir)
	}
}

// TestFilesThatDoNotFit: between the replacement of the certificate and of its key, and while one file is
// missing, the last matching pair is used.
func TestFilesThatDoNotFit(t *testing.T) {
	ca, dir, next := testpki.New(t), t.TempDir(), t.TempDir()
	ca.IssueInto(t, dir, "client")
	ca.IssueInto(t, next, "client")
	s := server(t, ca, 0)
	c := client(t, ca, dir, s.URL)
	before := serial(t, dir)
	for _, step := range []func() error{
		func() error { return os.Rename(filepath.Join(next, "tls.crt"), filepath.Join(dir, "tls.crt")) },
		func() error { return os.Remove(filepath.Join(dir, "tls.key")) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); time.Since(began) < 50*time.Millisecond; {
			if got, err := get(c, s.URL); err != nil || got != before {
				t.Fatalf("the server sees certificate %q, error %v, want %s", got, err, before)
			}
		}
	}
	if err := os.Rename(filepath.Join(next, "tls.key"), filepath.Join(dir, "tls.key")); err != nil {
		t.Fatal(err)
	}
	await(t, c, s.URL, dir)
}

// TestAwaiting: until the files exist, requests fail at once.
func TestAwaiting(t *testing.T) {
	ca, dir := testpki.New(t), t.TempDir()
	s := server(t, ca, 0)
	cfg, err := Awaiting(&rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: ca.PEM, CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := get(c, s.URL); err == nil || !strings.Contains(err.Error(), "there is no client certificate yet") {
			t.Errorf("without files: got %v", err)
		}
	}
	c.CloseIdleConnections()
	ca.IssueInto(t, dir, "client")
	if got, err := get(c, s.URL); err != nil || got != serial(t, dir) {
		t.Errorf("at once when they are there: got %q, error %v", got, err)
	}
	if _, err := Awaiting(&rest.Config{}); err == nil {
		t.Error("no error without the names of files")
	}
}

func TestWhatIsNotReloaded(t *testing.T) {
	ca := testpki.New(t)
	cert, key := ca.Issue(t, "client")
	data := rest.TLSClientConfig{CertData: []byte("c"), KeyData: []byte("k"), CertFile: cert, KeyFile: key}
	for name, cfg := range map[string]*rest.Config{
		"token": {BearerToken: "x"},
		"data":  {TLSClientConfig: data},
		"other": {Transport: http.DefaultTransport, TLSClientConfig: rest.TLSClientConfig{CertFile: cert, KeyFile: key}},
	} {
		if got, err := Reloading(cfg); err != nil || got != cfg {
			t.Errorf("%s: got another configuration or error %v", name, err)
		}
	}
	if _, err := Reloading(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CertFile: cert + "x", KeyFile: key}}); err == nil {
		t.Error("no error for a certificate file that is missing")
	}
}

// TestHostWithoutScheme: requests to a host without a scheme use https. client-go decides this by the presence
// of a certificate.
func TestHostWithoutScheme(t *testing.T) {
	cert, key := testpki.New(t).Issue(t, "client")
	cfg, err := Reloading(&rest.Config{Host: "127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CertFile: cert, KeyFile: key}})
	if err != nil {
		t.Fatal(err)
	}
	set, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := set.CoreV1().RESTClient().Get().URL().Scheme; got != "https" {
		t.Errorf("requests go by %s, want https", got)
	}
}
