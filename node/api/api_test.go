// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// server serves cfg and reports the end of each request.
type server struct {
	*httptest.Server
	served chan struct{} // receives one value per served request
}

func serve(t testing.TB, cfg api.PodHandlerConfig) server {
	t.Helper()
	return serveHandler(t, api.PodHandler(cfg, true))
}

// serveUntil is serve with a base context for requests. stop ends this context.
func serveUntil(t *testing.T, cfg api.PodHandlerConfig) (s server, stop context.CancelFunc) {
	t.Helper()
	base, stop := context.WithCancel(t.Context())
	h := api.PodHandler(cfg, true)
	return serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h.ServeHTTP(w, req.WithContext(base))
	})), stop
}

func serveHandler(t testing.TB, h http.Handler) server {
	t.Helper()
	served := make(chan struct{}, 1000)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		defer func() { served <- struct{}{} }()
		h.ServeHTTP(w, req)
	}))
	t.Cleanup(srv.Close)
	return server{srv, served}
}

func (s server) config() *rest.Config { return &rest.Config{Host: s.URL} }

// do sends a request and returns the status code, the header and the body. It does not follow redirects.
func (s server) do(t *testing.T, method, path string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, resp.Header, string(body)
}

func (s server) get(t *testing.T, path string) (int, string) {
	t.Helper()
	code, _, body := s.do(t, http.MethodGet, path)
	return code, body
}

// transports lists the protocols by which a client can reach exec and attach.
var transports = []struct {
	name string
	new  func(s server, path string) (remotecommand.Executor, error)
}{
	{"SPDY", func(s server, path string) (remotecommand.Executor, error) {
		return remotecommand.NewSPDYExecutor(s.config(), http.MethodPost, mustURL(s.URL+path))
	}},
	{"WebSocket v5", func(s server, path string) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutor(s.config(), http.MethodGet, s.URL+path)
	}},
	{"WebSocket v4", func(s server, path string) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutorForProtocols(s.config(), http.MethodGet, s.URL+path, "v4.channel.k8s.io")
	}},
}

// overTransports runs a test for each transport. stream runs a session on a path.
func overTransports(t *testing.T, test func(t *testing.T, stream streamFunc)) {
	for _, transport := range transports {
		t.Run(transport.name, func(t *testing.T) {
			test(t, func(ctx context.Context, s server, path string, opts remotecommand.StreamOptions) error {
				t.Helper()
				executor, err := transport.new(s, path)
				if err != nil {
					t.Fatal(err)
				}
				return executor.StreamWithContext(ctx, opts)
			})
		})
	}
}

type streamFunc func(ctx context.Context, s server, path string, opts remotecommand.StreamOptions) error

// within returns a value of ch, or the zero value once ch is closed, and fails the test after limit. The limit is far shorter than the
// timeout of a test.
func within[T any](t *testing.T, ch <-chan T, limit time.Duration, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(limit):
		t.Fatalf("%s: not within %v", what, limit)
		panic("unreachable")
	}
}

// buffer is a bytes.Buffer that is safe for concurrent use.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// through returns s behind a relay, and a function that drops every connection without notice, like a crashed client or a broken network.
func (s server) through(t *testing.T) (server, func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	hold := func(conn net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		conns = append(conns, conn)
	}
	breakAll := func() {
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range conns {
			conn.Close()
		}
	}
	var relays sync.WaitGroup
	relays.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			node, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				client.Close()
				return
			}
			hold(client)
			hold(node)
			relays.Go(func() { _, _ = io.Copy(node, client); node.Close() })
			relays.Go(func() { _, _ = io.Copy(client, node); client.Close() })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		breakAll()
		relays.Wait()
	})
	relayed := &httptest.Server{URL: "http://" + listener.Addr().String()}
	return server{relayed, s.served}, breakAll
}

var errBackend = errors.New("backend is on fire")
