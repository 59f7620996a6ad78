// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
)

// serveInspection serves the state of the process to tests.
func serveInspection(socket string) (*http.Server, error) {
	_ = os.Remove(socket)                       // left by a killed daemon
	listener, err := net.Listen("unix", socket) //nolint:noctx // it does not wait for anything
	if err != nil {
		return nil, fmt.Errorf("let tests look inside: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /goroutines", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strconv.Itoa(runtime.NumGoroutine()))
	})
	mux.HandleFunc("GET /stacks", func(w http.ResponseWriter, _ *http.Request) {
		_ = pprof.Lookup("goroutine").WriteTo(w, 1)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // until it is closed
	return server, nil
}

// Inspect returns the answer of the daemon with that socket for the path.
func Inspect(ctx context.Context, socket, path string) (string, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://daemon/"+path, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("inspect the daemon: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}
