// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// probeMetrics are the metrics of the kubelet about probes. They have their own registry, because they are served separately: they have a series per
// container.
type probeMetrics struct {
	registry *prometheus.Registry
	results  *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newProbeMetrics() *probeMetrics {
	m := &probeMetrics{
		registry: prometheus.NewRegistry(),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "prober_probe_total",
			Help: "Cumulative number of a liveness, readiness or startup probe for a container by result.",
		}, []string{"probe_type", "result", "container", "pod", "namespace", "pod_uid"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "prober_probe_duration_seconds",
			Help: "Duration in seconds for a probe response.",
		}, []string{"probe_type", "container", "pod", "namespace"}),
	}
	m.registry.MustRegister(m.results, m.duration)
	return m
}

// counts are the metrics of one probe. They have no series before its first run.
type counts struct {
	results  *prometheus.CounterVec
	duration prometheus.ObserverVec
}

// countsOf returns the metrics of a probe of a container.
func (m *probeMetrics) countsOf(t Target, kind Kind) counts {
	labels := containerLabels(t)
	labels["probe_type"] = string(kind)
	duration := m.duration.MustCurryWith(labels)
	labels["pod_uid"] = string(t.Pod.UID)
	return counts{results: m.results.MustCurryWith(labels), duration: duration}
}

func containerLabels(t Target) prometheus.Labels {
	return prometheus.Labels{"container": t.Container.Name, "pod": t.Pod.Name, "namespace": t.Pod.Namespace}
}

// addRun counts a run. It records the duration of successful runs only, as a kubelet does.
func (c counts) addRun(o outcome, took time.Duration) {
	switch o {
	case success, warning:
		c.results.WithLabelValues("successful").Inc()
		c.duration.WithLabelValues().Observe(took.Seconds())
	default:
		c.results.WithLabelValues("failed").Inc()
	}
}

// removeSeries removes the series of a container.
func (m *probeMetrics) removeSeries(c *container) {
	labels := containerLabels(c.target)
	m.duration.DeletePartialMatch(labels)
	labels["pod_uid"] = string(c.target.Pod.UID)
	m.results.DeletePartialMatch(labels)
}

// Metrics returns prober_probe_total and prober_probe_duration_seconds of the known containers, for
// /metrics/probes.
func (p *Prober) Metrics(context.Context) ([]*dto.MetricFamily, error) {
	families, err := p.metrics.registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather the metrics of probes: %w", err)
	}
	return families, nil
}
