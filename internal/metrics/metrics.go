// SPDX-License-Identifier: Apache-2.0

// Package metrics holds the registry into which the packages of this library
// register their own metrics.
//
// It is a registry of its own, so importing the library adds nothing to a
// program's default registry; a program serves it by gathering Registry.
//
// What surprises: several nodes in one process share these metrics.
package metrics

import "github.com/prometheus/client_golang/prometheus"

// Registry gathers every metric of the library.
var Registry = prometheus.NewRegistry()

// register adds c to Registry and returns it, for use in variable declarations.
func register[C prometheus.Collector](c C) C {
	Registry.MustRegister(c)
	return c
}

// NewCounterVec returns a registered counter with the given labels.
func NewCounterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return register(prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

// NewCounter returns a registered counter.
func NewCounter(name, help string) prometheus.Counter {
	return register(prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help}))
}

// NewGauge returns a registered gauge.
func NewGauge(name, help string) prometheus.Gauge {
	return register(prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help}))
}

// NewHistogramVec returns a registered histogram of seconds, from one
// millisecond to ten minutes, with the given labels.
func NewHistogramVec(name, help string, labels ...string) *prometheus.HistogramVec {
	return register(prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    name,
		Help:    help,
		Buckets: []float64{0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600},
	}, labels))
}
