// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"math"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// maxSeries bounds the series of a Gauge. Values with additional labels are merged under overflow.
const maxSeries = 3000

// overflow is the label of series beyond maxSeries.
const overflow = "other"

// Gauge computes its values when it is read, so they are never stale: every source is a tracked function. Sources with the same labels are merged. It
// has no value without a source.
type Gauge struct {
	desc   *prometheus.Desc
	labels int
	merge  func(a, b float64) float64

	mu   sync.Mutex
	next int            // guarded by mu
	from map[int]source // guarded by mu
}

type source struct {
	labels []string
	value  func() float64
}

// Merge combines the values of several sources with the same labels.
type Merge func(a, b float64) float64

// The ways to merge.
var (
	Sum      Merge = func(a, b float64) float64 { return a + b }
	Greatest Merge = math.Max
	Least    Merge = math.Min
)

// NewGauge returns a registered gauge with the given labels.
func NewGauge(name, help string, merge Merge, labels ...string) *Gauge {
	return registerRow(newRow(name, help, "gauge", labels), &Gauge{desc: prometheus.NewDesc(name, help, labels, nil), labels: len(labels), merge: merge, from: map[int]source{}})
}

// Track calls value whenever the gauge is read, until untrack is called. There is one value for each label.
func (g *Gauge) Track(value func() float64, labels ...string) (untrack func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := g.next
	g.next++
	g.from[key] = source{labels, value}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.from, key)
	}
}

// Describe implements prometheus.Collector.
func (g *Gauge) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// Collect implements prometheus.Collector.
func (g *Gauge) Collect(out chan<- prometheus.Metric) {
	g.mu.Lock()
	sources := make([]source, 0, len(g.from))
	for _, s := range g.from {
		sources = append(sources, s)
	}
	g.mu.Unlock() // a source may lock other mutexes
	values, labels := map[string]float64{}, map[string][]string{}
	for _, s := range sources {
		key := keyOf(s.labels)
		if _, known := values[key]; !known && len(values) >= maxSeries {
			s.labels = make([]string, g.labels)
			for i := range s.labels {
				s.labels[i] = overflow
			}
			key = keyOf(s.labels) // the key of a source with these labels
		}
		v := s.value()
		if before, known := values[key]; known {
			v = g.merge(before, v)
		}
		values[key], labels[key] = v, s.labels
	}
	for key, v := range values {
		out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, v, labels[key]...)
	}
}

func keyOf(labels []string) string { return strings.Join(labels, "\xff") }

// Value is a number to track. It is safe for concurrent use.
type Value struct {
	mu sync.Mutex
	v  float64 // guarded by mu
}

// Set changes it.
func (v *Value) Set(to float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.v = to
}

// Get returns it.
func (v *Value) Get() float64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.v
}

// Bool is 1 for true.
func Bool(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
