// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// vanishing forwards bytes between clients and a server. After freeze, the packets of the existing connections
// vanish, and neither side gets an error.
type vanishing struct {
	net.Listener
	server string
	frozen atomic.Pointer[chan struct{}] // closed: the existing connections lose all packets
	dials  atomic.Int32
}

func newVanishing(t *testing.T, server string) *vanishing {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &vanishing{Listener: l, server: server}
	v.thaw()
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			v.dials.Add(1)
			go v.pass(t.Context(), conn, *v.frozen.Load())
		}
	}()
	return v
}

func (v *vanishing) thaw() {
	frozen := make(chan struct{})
	v.frozen.Store(&frozen)
}

// freeze drops the packets of the existing connections; new connections work.
func (v *vanishing) freeze() {
	frozen := *v.frozen.Load()
	v.thaw()
	close(frozen)
}

func (v *vanishing) pass(ctx context.Context, client net.Conn, frozen <-chan struct{}) {
	defer client.Close()
	server, err := net.Dial("tcp", v.server)
	if err != nil {
		return
	}
	defer server.Close()
	copyUntil := func(to, from net.Conn) {
		buf := make([]byte, 4096)
		for {
			n, err := from.Read(buf)
			select {
			case <-frozen:
				_, _ = io.Copy(io.Discard, from)
				return
			default:
			}
			if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	}
	go copyUntil(client, server)
	copyUntil(server, client)
	<-ctx.Done()
}

func TestHeartbeatsLeaveADeadConnection(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Node","apiVersion":"v1"}`))
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	proxy := newVanishing(t, srv.Listener.Addr().String())

	base := &rest.Config{Host: "https://" + proxy.Addr().String(), TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	client, err := kubernetes.NewForConfig(heartbeatConfig(base, 2*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	beat := func() error {
		_, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		return err
	}
	if err := errors.Join(beat(), beat()); err != nil {
		t.Fatal(err)
	}
	if got := proxy.dials.Load(); got != 1 {
		t.Fatalf("connections for two heartbeats: got %d, want 1", got)
	}

	proxy.freeze()
	if err := beat(); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("heartbeat into nothing: got %v, want a time-out", err)
	}
	if err := beat(); err != nil {
		t.Errorf("the heartbeat after a time-out did not connect anew: %v", err)
	}
	if got := proxy.dials.Load(); got != 2 {
		t.Errorf("connections: got %d, want 2", got)
	}
}

// TestWithTimeoutLetsWatchesLive: the timeout cuts an endless plain response, but no watch.
func TestWithTimeoutLetsWatchesLive(t *testing.T) {
	const timeout = time.Second
	more := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, "a")
		w.(http.Flusher).Flush()
		select {
		case <-more:
			_, _ = io.WriteString(w, "b")
		case <-req.Context().Done():
		}
	}))
	defer srv.Close()
	timedOut := make(chan struct{})
	client := &http.Client{Transport: &withTimeout{next: srv.Client().Transport, timeout: timeout, onTimeout: func() { close(timedOut) }}}

	watch, err := client.Get(srv.URL + "?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	plain, err := client.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Body.Close()
	if got, err := io.ReadAll(plain.Body); err == nil {
		t.Errorf("an answer without an end: got %q and no error", got)
	}
	<-timedOut // the timeout of the watch would have passed

	close(more)
	if got, err := io.ReadAll(watch.Body); string(got) != "ab" || err != nil {
		t.Errorf("watch: got %q, %v; want ab", got, err)
	}
}
