// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// TestTokenIsRenewed checks that the next request uses a replaced token file.
func TestTokenIsRenewed(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	want := "Bearer first"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != want || r.Header.Get(wire.HeaderSession) == "" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	write(t, token, "first\n")
	config := Config{URL: server.URL}
	if err := config.Token.UnmarshalJSON([]byte(`{"file":"` + token + `"}`)); err != nil {
		t.Fatal(err)
	}
	c, err := newClient(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	want = "Bearer second"
	if _, err := c.ping(t.Context()); err == nil || !strings.Contains(err.Error(), "not accepted") || strings.Contains(err.Error(), "first") {
		t.Errorf("an old token: %v", err)
	}
	write(t, token, "second, which is longer\n")
	want = "Bearer second, which is longer"
	eventually(t, "the new token to count", func() bool { _, err := c.ping(t.Context()); return err == nil })
}

// TestAuthority checks that a server of another authority gets no request. A server that asks for a client
// certificate gets the current one of the files.
func TestAuthority(t *testing.T) {
	dir := t.TempDir()
	mine, other := testpki.New(t), testpki.New(t)
	asked := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	certFile, keyFile := mine.Issue(t, "server")
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(mine.Cert)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca, wrong := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "other.pem")
	write(t, ca, string(mine.PEM))
	write(t, wrong, string(other.PEM))
	ping := func(files TLS) error {
		c, err := newClient(Config{URL: server.URL, TLS: files})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.ping(t.Context())
		return err
	}
	if err := ping(TLS{CAFile: wrong}); err == nil || !strings.Contains(err.Error(), "certificate") || asked != 0 {
		t.Errorf("a server of an unknown authority: %v after %d requests", err, asked)
	}
	if err := ping(TLS{CAFile: ca}); err == nil || asked != 0 {
		t.Errorf("without a certificate: %v after %d requests", err, asked)
	}
	own := filepath.Join(dir, "own")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = other.IssueInto(t, own, "node")
	c, err := newClient(Config{URL: server.URL, TLS: TLS{CAFile: ca, CertFile: certFile, KeyFile: keyFile}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ping(t.Context()); err == nil || asked != 0 {
		t.Errorf("with a certificate of another authority: %v after %d requests", err, asked)
	}
	mine.IssueInto(t, own, "node")
	der := filepath.Join(dir, "ca.der")
	write(t, der, string(mine.Cert.Raw))
	if err := ping(TLS{CAFile: der, CertFile: certFile, KeyFile: keyFile}); err != nil || asked != 1 {
		t.Errorf("with an authority in DER: %v after %d requests", err, asked)
	}
	asked = 0
	if _, err := c.ping(t.Context()); err != nil || asked != 1 {
		t.Errorf("with a certificate that was replaced: %v after %d requests", err, asked)
	}
	if _, err := newClient(Config{URL: server.URL, TLS: TLS{CAFile: filepath.Join(dir, "absent")}}); err == nil {
		t.Error("a file that is not there was not missed")
	}
}

// TestNotTheProtocol checks that no pod is lost when another server, or a broken API server, answers.
func TestNotTheProtocol(t *testing.T) {
	for _, body := range []string{"", "<html>", `{"a":1}`, `[1]`, `[{"UID":7}]`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		c, err := newClient(Config{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		if said, err := c.statuses(t.Context(), []*corev1.Pod{goldenPod()}); err == nil || said != nil {
			t.Errorf("%q: got %v, %v, want an error", body, said, err)
		}
		server.Close()
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAuthorityBehindAProxy checks that the authorities and the certificate of the files are also used behind a
// proxy of the environment.
func TestAuthorityBehindAProxy(t *testing.T) {
	dir := t.TempDir()
	mine, other := testpki.New(t), testpki.New(t)
	certFile, keyFile := mine.Issue(t, "server")
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(mine.Cert)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	var passed atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		passed.Add(1)
		tunnel(w, r)
	}))
	defer proxy.Close()
	where, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	ca, wrong := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "other.pem")
	write(t, ca, string(mine.PEM))
	write(t, wrong, string(other.PEM))
	own := filepath.Join(dir, "own")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = mine.IssueInto(t, own, "node")
	for file, want := range map[string]bool{ca: true, wrong: false} {
		c, err := newClient(Config{URL: server.URL, TLS: TLS{CAFile: file, CertFile: certFile, KeyFile: keyFile}})
		if err != nil {
			t.Fatal(err)
		}
		transport := c.http.Transport.(*http.Transport)
		transport.Proxy = http.ProxyURL(where) // a proxy of the environment is never used for this machine
		if _, err := c.ping(t.Context()); (err == nil) != want {
			t.Errorf("with the authorities of %s: %v", filepath.Base(file), err)
		}
		transport.CloseIdleConnections()
	}
	if passed.Load() != 2 {
		t.Errorf("%d connections went through the proxy, want 2", passed.Load())
	}
}

// tunnel answers a CONNECT as a proxy does.
func tunnel(w http.ResponseWriter, r *http.Request) {
	to, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
	if err != nil || r.Method != http.MethodConnect {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer to.Close()
	from, _, err := http.NewResponseController(w).Hijack() // taken over before the answer: later data of the client is not in a buffer then
	if err != nil {
		return
	}
	defer from.Close()
	if _, err := io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(to, from)
		to.Close()
	}()
	_, _ = io.Copy(from, to)
}

// TestReplacedCertificateCounts checks that a kept-alive connection ends when the certificate that it was made
// with is replaced.
func TestReplacedCertificateCounts(t *testing.T) {
	dir := t.TempDir()
	mine := testpki.New(t)
	certFile, keyFile := mine.Issue(t, "server")
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, string(r.TLS.PeerCertificates[0].Raw)+r.RemoteAddr)
	}))
	clients := x509.NewCertPool()
	clients.AddCert(mine.Cert)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(dir, "ca.pem")
	write(t, ca, string(mine.PEM))
	certFile, keyFile = mine.IssueInto(t, dir, "node")
	c, err := newClient(Config{URL: server.URL, TLS: TLS{CAFile: ca, CertFile: certFile, KeyFile: keyFile}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if i == 2 {
			mine.IssueInto(t, dir, "node")
		}
		if _, err := c.ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if seen[0] != seen[1] || seen[1] == seen[2] || seen[2] != seen[3] {
		t.Error("want one connection for each certificate")
	}
}
