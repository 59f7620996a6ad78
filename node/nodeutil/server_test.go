// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
)

// serving is a server on loopback.
type serving struct {
	url   string
	stop  context.CancelFunc
	ended chan error
}

// serve starts the server of cfg. client answers the server's reviews.
func serve(t *testing.T, cfg *NodeConfig, client *reviews, lines *lineLogger) *serving {
	t.Helper()
	cfg.HTTPListenAddr = "127.0.0.1:0"
	srv, err := newServer(cfg, client.client, "n1")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := srv.listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(lines.into(context.Background()))
	s := &serving{url: "https://" + listener.Addr().String(), stop: cancel, ended: make(chan error, 1)}
	go func() { s.ended <- srv.serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-s.ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

// end stops the server and returns the time that the stop took.
func (s *serving) end(t *testing.T) time.Duration {
	t.Helper()
	begin := time.Now()
	s.stop()
	if err := <-s.ended; err != nil {
		t.Errorf("serve: %v", err)
	}
	s.ended <- nil // for the cleanup
	return time.Since(begin)
}

func clientOf(cfg *tls.Config) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// fetch returns the status and body of a GET, or status 0 if there was no answer.
func fetch(t *testing.T, client *http.Client, url, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestServerSpeaksHTTP1AndTLS12(t *testing.T) {
	ca := testpki.New(t)
	cfg := serverConfig(t, ca)
	cfg.Handler = WithAuth(NoAuth(), hello)
	lines := &lineLogger{}
	s := serve(t, cfg, newReviews(t), lines)

	clientTLS := ca.ClientConfig(t, nil, "")
	clientTLS.NextProtos = []string{"h2", "http/1.1"}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), clientTLS)
	if err != nil {
		t.Fatal(err)
	}
	if got := conn.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("protocol: got %q, want http/1.1", got)
	}
	_ = conn.Close()

	old := ca.ClientConfig(t, nil, "")
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if status, _ := fetch(t, clientOf(old), s.url, ""); status != 0 {
		t.Errorf("TLS 1.1: got %d, want no handshake", status)
	}

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Big", strings.Repeat("x", maxHeaderBytes+8<<10))
	resp, err := clientOf(ca.ClientConfig(t, nil, "")).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 72 KiB: got %d, want 431", resp.StatusCode)
	}

	s.end(t)
	if got := lines.text(); !strings.Contains(got, "debug http: TLS handshake error") || strings.Contains(got, "warn") {
		t.Errorf("log: got %q, want the failed handshake at debug level only", got)
	}
}

// TestServerEndsItsStreams: the end of the server ends a running request and a hijacked connection.
func TestServerEndsItsStreams(t *testing.T) {
	before := goleak.IgnoreCurrent()
	ca := testpki.New(t)
	cfg := serverConfig(t, ca)
	begun, seen := make(chan string), make(chan string, 2)
	cfg.Handler = WithAuth(NoAuth(), http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/hijack" {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
		}
		begun <- req.URL.Path
		<-req.Context().Done()
		seen <- req.URL.Path
	}))
	api := newReviews(t)
	s := serve(t, cfg, api, &lineLogger{})
	client := clientOf(ca.ClientConfig(t, nil, ""))
	for _, path := range []string{"/hijack", "/plain"} {
		go func() {
			if resp, err := client.Get(s.url + path); err == nil {
				_ = resp.Body.Close()
			}
		}()
	}
	<-begun
	<-begun
	if took := s.end(t); took > 3*time.Second {
		t.Errorf("the server took %s to end although its handlers follow their context", took)
	}
	if len(seen) != 2 {
		t.Errorf("%d of 2 handlers had ended when serve returned", len(seen))
	}
	if status, _ := fetch(t, client, s.url, ""); status != 0 {
		t.Errorf("after the end: got %d", status)
	}
	api.close()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// TestServerDoesNotWaitForever: the server ends although a handler ignores its context.
func TestServerDoesNotWaitForever(t *testing.T) {
	ca := testpki.New(t)
	cfg := serverConfig(t, ca)
	begun, release := make(chan struct{}), make(chan struct{})
	cfg.Handler = WithAuth(NoAuth(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-release
	}))
	lines := &lineLogger{}
	s := serve(t, cfg, newReviews(t), lines)
	go func() {
		if resp, err := clientOf(ca.ClientConfig(t, nil, "")).Get(s.url); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-begun
	defer close(release)
	if took := s.end(t); took > 5*time.Second {
		t.Errorf("the server took %s to end, want at most 5 s", took)
	}
	if got := lines.text(); !strings.Contains(got, "warn Requests did not end in time") {
		t.Errorf("log: got %q", got)
	}
}
