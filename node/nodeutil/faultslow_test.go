// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// endless is a log that never ends.
type endless struct{ line []byte }

func (e endless) Read(p []byte) (int, error) { return copy(p, e.line), nil }
func (endless) Close() error                 { return nil }

// TestFault48LogClientsThatNeverReadAreCut: the server cuts clients that request endless logs and read nothing.
func TestFault48LogClientsThatNeverReadAreCut(t *testing.T) {
	ca := testpki.New(t)
	cfg := serverConfig(t, ca)
	cfg.HTTPListenAddr = "127.0.0.1:0"
	var sending, served atomic.Int64
	mux := http.NewServeMux()
	logs := api.HandleContainerLogs(func(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
		return endless{[]byte(strings.Repeat("x", 1023) + "\n")}, nil
	})
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, req *http.Request) {
		sending.Add(1)
		served.Add(1)
		defer sending.Add(-1)
		logs(w, req)
	})
	cfg.Handler, cfg.unauthenticated = mux, true
	srv, err := newServer(cfg, newReviews(t).client, "n1")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := newConnLimit(t.Context(), plain, 1000)
	listener.slowest = 2 * time.Second
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- srv.serve(ctx, listener) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	}()

	answered := func() bool { // only after the first response do all goroutines of the server exist
		conn, err := tls.Dial("tcp", plain.Addr().String(), ca.ClientConfig(t, nil, ""))
		return err == nil && conn.Close() == nil
	}
	await(t, "the server accepts", answered)
	await(t, "it has forgotten whom it accepted", func() bool {
		listener.mu.Lock()
		defer listener.mu.Unlock()
		return listener.open == 0
	})
	const clients = 50
	before, memory := goleak.IgnoreCurrent(), inUse()
	for range clients {
		conn, err := tls.Dial("tcp", plain.Addr().String(), ca.ClientConfig(t, nil, ""))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /containerLogs/ns/pod/main?follow=true HTTP/1.1\r\nHost: n1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "all clients are served", func() bool { return served.Load() == clients })
	each := (inUse() - memory) / clients
	await(t, "no client holds anything", func() bool { return sending.Load() == 0 })
	await(t, "the goroutines are what they were", func() bool { return goleak.Find(before) == nil })
	if most := int64(192 << 10); each > most {
		t.Errorf("a client costs %d KiB, want at most %d, its own side included", each>>10, most>>10)
	}
	faultrow.Record(t, 48, fmt.Sprintf("%d clients ask for an endless log and never read", clients),
		"memory for a client %d KiB (with its own side, in the same process), all cut after the time for one write, goroutines back to what they were", each>>10)
}

// await waits until is returns true.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !is() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatalf("wait until %s: it did not happen", what)
		}
	}
}

// inUse returns the bytes of heap and stacks.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
