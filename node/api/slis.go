// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// The results of a health check, as values of labels.
const (
	checkSuccess = "success"
	checkError   = "error"
)

// healthchecks counts the results of health checks for all nodes of the process. Only /metrics/slis serves it, as in a kubelet.
var (
	healthchecks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kubernetes_healthchecks_total", Help: "Number of results of a health check.",
	}, []string{"name", "type", "status"})
	healthcheckRegistry = func() *prometheus.Registry {
		r := prometheus.NewRegistry()
		r.MustRegister(healthchecks)
		return r
	}()
)

// sliMetrics runs the checks, and reports and counts their results under the names of the Kubernetes components.
func sliMetrics(ctx context.Context, checks []HealthCheck) ([]*dto.MetricFamily, error) {
	const kind = "healthz"
	now := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kubernetes_healthcheck", Help: "Result of a health check: 1 is well, 0 is not.",
	}, []string{"name", "type"})
	for _, check := range checks {
		well, result := 1.0, checkSuccess
		if err := recoverPanic(ctx, func() error { return check.Check(ctx) }); err != nil {
			well, result = 0, checkError
		}
		now.WithLabelValues(check.Name, kind).Set(well)
		healthchecks.WithLabelValues(check.Name, kind, result).Inc()
	}
	own := prometheus.NewRegistry()
	own.MustRegister(now)
	families, err := prometheus.Gatherers{own, healthcheckRegistry}.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather the results of health checks: %w", err)
	}
	return families, nil
}
