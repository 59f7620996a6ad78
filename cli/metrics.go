// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // registers rest_client_*

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

const (
	metricsPath = "/metrics"
	livezPath   = "/livez"
)

// The node serves the metrics of the process and of its Kubernetes client from the registry of the client.
func init() { metrics.Process = legacyregistry.DefaultGatherer }

var buildInfoGauge = metrics.NewGauge("virtual_kubelet_build_info", "Version, commit, Go version and provider of the program. The value is always 1.",
	metrics.Least, "version", "commit", "go_version", "provider")

// metricsHandler serves our own metrics, and the metrics of the process and of the Kubernetes client.
func metricsHandler() http.Handler {
	return promhttp.HandlerFor(
		prometheus.Gatherers{metrics.Registry, metrics.Process},
		promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError},
	)
}

// serveMetrics serves /metrics and /livez at --metrics-addr until ctx ends. /livez always succeeds while the process works; the process
// exits when the node stops.
func (o *options) serveMetrics(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsPath, metricsHandler())
	mux.HandleFunc("GET "+livezPath, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }) // the client may have disconnected
	return serveLoopback(ctx, "metrics", o.MetricsAddr, mux)
}

// serveDebug serves the page about pods at addr until ctx ends. It refuses requests whose host is not loopback: otherwise a web page in a
// browser on this machine could read it through a DNS name that resolves to this address.
func serveDebug(ctx context.Context, addr string, page http.Handler) error {
	mux := http.NewServeMux()
	mux.Handle("GET "+api.DebugPath, page)
	mux.Handle("GET /{$}", http.RedirectHandler(api.DebugPath, http.StatusFound))
	return serveLoopback(ctx, "the debug page", addr, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if host := req.Host; !loopback(host) && !loopback(net.JoinHostPort(strings.Trim(host, "[]"), "80")) {
			http.Error(w, "403 this address is for requests to a loopback host only", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, req)
	}))
}

// serveLoopback serves h at addr until ctx ends.
func serveLoopback(ctx context.Context, thing, addr string, h http.Handler) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("serve %s: %w", thing, err)
	}
	log.G(ctx).WithField("address", l.Addr().String()).Debug("Serving " + thing)
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 90 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", thing, err)
	}
	return nil
}

// livezCommand returns the command that checks whether the running program with the same settings is alive. It is for the probe of a pod
// whose image has no other program.
func (o *options) livezCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "livez",
		Short: "Ask the program that runs with the same settings at --metrics-addr whether it is alive",
		Long:  "Ask the program that runs with the same settings at --metrics-addr whether it is alive. The exit code is 0 if it answers.",
		Args:  noArguments(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := o.resolve(cmd.Root().PersistentFlags(), os.Getenv)
			if r == nil {
				return err
			}
			if r.MetricsAddr == "" {
				return errors.New("--metrics-addr is not set: the program answers /livez there")
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.MetricsAddr+livezPath, nil)
			if err != nil {
				return fmt.Errorf("ask at --metrics-addr %s: %w", r.MetricsAddr, err)
			}
			resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req) // without a proxy, because the address is loopback
			if err != nil {
				return fmt.Errorf("the program does not answer: %w", err)
			}
			_ = resp.Body.Close() // the body was only read
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("the program at --metrics-addr %s answers %s", r.MetricsAddr, resp.Status)
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "how long the answer may take")
	return cmd
}
