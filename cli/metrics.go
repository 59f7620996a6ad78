// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // registers rest_client_*

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const metricsPath = "/metrics"

// The node serves the metrics of the process and of its Kubernetes client from the registry of the client.
func init() { metrics.Process = legacyregistry.DefaultGatherer }

var buildInfoGauge = metrics.NewGauge("virtual_kubelet_build_info", "What the program is: version, commit, version of Go and provider. The value is always 1.",
	metrics.Least, "version", "commit", "go_version", "provider")

// metricsHandler serves our own metrics, and those of the process and of the
// Kubernetes client.
func metricsHandler() http.Handler {
	return promhttp.HandlerFor(
		prometheus.Gatherers{metrics.Registry, metrics.Process},
		promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError},
	)
}

// serveMetrics serves /metrics at --metrics-addr until ctx ends.
func (o *options) serveMetrics(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.MetricsAddr)
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	log.G(ctx).WithField("address", l.Addr().String()).Info("Serving metrics")
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsPath, metricsHandler())
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 90 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
