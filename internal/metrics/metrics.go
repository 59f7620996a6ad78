// SPDX-License-Identifier: Apache-2.0

// Package metrics holds the registry into which the packages of this library
// register their own metrics.
//
// It is a registry of its own, so importing the library adds nothing to a
// program's default registry; a program serves it by gathering Registry.
//
// What surprises: several nodes in one process share these metrics; a gauge is
// the sum of theirs.
package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

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

// Sum is a gauge to which the nodes of a process contribute a share each.
type Sum struct{ prometheus.Gauge }

// NewSum returns a registered gauge that is the sum of its shares.
func NewSum(name, help string) Sum {
	return Sum{register(prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help}))}
}

// Share returns a new share, which is 0.
func (s Sum) Share() *Share { return &Share{sum: s} }

// Share is what one node contributes to a Sum. It is safe for concurrent use.
type Share struct {
	sum Sum

	mu    sync.Mutex
	value float64 // guarded by mu
}

// Set changes the share.
func (s *Share) Set(value float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum.Add(value - s.value)
	s.value = value
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

// NewHistogram returns a registered histogram with the given upper bounds.
func NewHistogram(name, help string, bounds ...float64) prometheus.Histogram {
	return register(prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}))
}
