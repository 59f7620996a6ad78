// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
)

const rotations = 10

// load sends requests until stop. Half of its clients open a connection for each request, and half keep one
// connection. A request fails the test if its status is not 200.
type load struct {
	sent atomic.Int64
	stop func()

	mu      sync.RWMutex // read-locked during a request
	clients []*http.Client
}

const loaders = 4

func startLoad(t *testing.T, url string, tlsConfig *tls.Config) *load {
	t.Helper()
	l, quit := &load{}, make(chan struct{})
	l.use(tlsConfig)
	var running sync.WaitGroup
	for i := range loaders {
		running.Go(func() {
			for t.Context().Err() == nil {
				select {
				case <-quit:
					return
				default:
				}
				l.mu.RLock()
				status, body := fetch(t, l.clients[i], url, "")
				l.mu.RUnlock()
				if l.sent.Add(1); status != http.StatusOK {
					t.Errorf("a request in the middle of the rotation: got %d %s", status, body)
					return
				}
			}
		})
	}
	l.stop = sync.OnceFunc(func() {
		close(quit)
		running.Wait()
		l.use(tlsConfig)
	})
	t.Cleanup(l.stop)
	return l
}

// use makes all further requests with tlsConfig, over new connections.
func (l *load) use(tlsConfig *tls.Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, client := range l.clients {
		client.CloseIdleConnections()
	}
	l.clients = nil
	for i := range loaders {
		l.clients = append(l.clients, &http.Client{Transport: &http.Transport{TLSClientConfig: tlsConfig.Clone(), DisableKeepAlives: i%2 == 0}})
	}
}

// until waits for done, and fails after a minute, the promised limit.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for began := time.Now(); !done(); {
		if time.Since(began) > time.Minute {
			t.Fatalf("not within a minute: %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// served returns the serial number of the server's certificate on a new connection.
func served(t *testing.T, url string, cfg *tls.Config) string {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

func serialOf(t *testing.T, path string) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(path, strings.Replace(path, ".crt", ".key", 1))
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf.SerialNumber.String()
}

// TestSecurityB2ServingCertificateIsReadAgain rotates the files under load.
func TestSecurityB2ServingCertificateIsReadAgain(t *testing.T) {
	ca, dir := testpki.New(t), t.TempDir()
	cert, key := ca.IssueInto(t, dir, "n1")
	cfg := &NodeConfig{Handler: WithAuth(NoAuth(), hello)}
	if err := WithTLSConfig(WithKeyPairFiles(cert, key))(cfg); err != nil {
		t.Fatal(err)
	}
	lines := &lineLogger{}
	s := serve(t, cfg, newReviews(t), lines)
	trust := ca.ClientConfig(t, nil, "")
	l := startLoad(t, s.url, trust)
	for range rotations {
		ca.IssueInto(t, dir, "n1")
		want := serialOf(t, cert)
		until(t, "new handshakes use the new certificate", func() bool { return served(t, s.url, trust) == want })
	}
	want := serialOf(t, cert)
	if err := os.WriteFile(cert, []byte("half a fi"), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the log tells of a file that is broken", func() bool {
		if got := served(t, s.url, trust); got != want {
			t.Fatalf("with a broken file the server shows certificate %s, want the last good one, %s", got, want)
		}
		return strings.Contains(lines.text(), "warn The serving certificate was replaced by files that cannot be used")
	})
	l.stop()
	t.Logf("%d requests", l.sent.Load())
}

// TestSecurityB5ClientAuthorityIsReadAgain replaces the authority of clients under load: the file
// holds the old and the new one for a while, as in every rotation without a gap.
func TestSecurityB5ClientAuthorityIsReadAgain(t *testing.T) {
	ca, dir := testpki.New(t), t.TempDir()
	path := filepath.Join(dir, "clients.crt")
	trust := func(authorities ...*testpki.Authority) {
		t.Helper()
		var pem []byte
		for _, a := range authorities {
			pem = append(pem, a.PEM...)
		}
		if err := os.WriteFile(path+".new", pem, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	old := testpki.New(t)
	trust(old)
	cfg := serverConfig(t, ca, WithClientCAFile(path))
	cfg.Handler = hello
	s := serve(t, cfg, newReviews(t), &lineLogger{})

	oldTLS := ca.ClientConfig(t, old, "root")
	l := startLoad(t, s.url, oldTLS)
	kept := &http.Client{Transport: &http.Transport{TLSClientConfig: oldTLS}}
	for range rotations {
		next := testpki.New(t)
		nextTLS := ca.ClientConfig(t, next, "root")
		if status, _ := fetch(t, clientOf(nextTLS), s.url, ""); status != http.StatusUnauthorized {
			t.Fatalf("a client of an authority that is not trusted: got %d, want 401", status)
		}
		if status, body := fetch(t, kept, s.url, ""); status != http.StatusOK {
			t.Fatalf("a client of the trusted authority: got %d %s", status, body)
		}
		trust(old, next)
		until(t, "clients of the new authority are accepted", func() bool {
			status, _ := fetch(t, clientOf(nextTLS), s.url, "")
			return status == http.StatusOK
		})
		l.use(nextTLS)
		trust(next)
		until(t, "a client of the old authority is refused", func() bool {
			status, _ := fetch(t, clientOf(oldTLS), s.url, "")
			return status == http.StatusUnauthorized
		})
		if status, _ := fetch(t, kept, s.url, ""); status != http.StatusUnauthorized {
			t.Errorf("on a connection that was there, a client of the old authority: got %d, want 401", status)
		}
		kept.CloseIdleConnections()
		old, oldTLS = next, nextTLS
		kept = &http.Client{Transport: &http.Transport{TLSClientConfig: oldTLS}}
	}
	defer kept.CloseIdleConnections()
	if status, _ := fetch(t, clientOf(ca.ClientConfig(t, nil, "")), s.url, "root"); status != http.StatusOK {
		t.Errorf("a token beside the authorities: got %d, want 200", status)
	}
	l.stop()
	t.Logf("%d requests", l.sent.Load())
}

func TestOneSourceOfClientAuthorities(t *testing.T) {
	ca := testpki.New(t)
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := WithClientCAFile(path)(&NodeConfig{}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a missing file: got %v", err)
	}
	if err := os.WriteFile(path, ca.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := serverConfig(t, ca, WithClientCAFile(path), WithTLSConfig(WithCACert(ca.PEM)))
	cfg.Handler = hello
	if _, err := newServer(cfg, newReviews(t).client, "n1"); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Errorf("two sources of authorities: got %v", err)
	}
}
