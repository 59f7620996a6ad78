// SPDX-License-Identifier: Apache-2.0

// Package metrics holds the registry into which the packages of this library register their own metrics.
//
// The registry is separate, so importing the library adds nothing to a program's default registry. A program serves it by gathering Registry.
//
// Note: several nodes in one process share these metrics. Metrics about nodes have the label node.
package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Registry gathers every metric of the library.
var Registry = prometheus.NewRegistry()

// Row describes a metric for the reference documentation.
type Row struct {
	Name, Help, Type string
	Labels           []string
}

// rows has the rows of all metrics. They are written while packages are initialized, one after the other.
var rows []Row

// Rows returns the rows of all metrics, sorted by name.
func Rows() []Row {
	return slices.SortedFunc(slices.Values(rows), func(a, b Row) int { return strings.Compare(a.Name, b.Name) })
}

func newRow(name, help, kind string, labels []string) Row { return Row{name, help, kind, labels} }

// registerRow adds c to Registry and returns it, for use in variable declarations.
func registerRow[C prometheus.Collector](r Row, c C) C {
	Registry.MustRegister(c)
	rows = append(rows, r)
	return c
}

// NewCounterVec returns a registered counter with the given labels.
func NewCounterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return registerRow(newRow(name, help, "counter", labels), prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

// NewCounter returns a registered counter.
func NewCounter(name, help string) prometheus.Counter {
	return registerRow(newRow(name, help, "counter", nil), prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help}))
}

// NewHistogramVec returns a registered histogram of seconds, from one
// millisecond to ten minutes, with the given labels.
func NewHistogramVec(name, help string, labels ...string) *prometheus.HistogramVec {
	return registerRow(newRow(name, help, "histogram", labels), prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    name,
		Help:    help,
		Buckets: []float64{0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600},
	}, labels))
}

// NewHistogram returns a registered histogram with the given upper bounds.
func NewHistogram(name, help string, bounds ...float64) prometheus.Histogram {
	return registerRow(newRow(name, help, "histogram", nil), prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}))
}
