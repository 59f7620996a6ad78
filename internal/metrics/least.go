// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Least is a gauge with the least of what several report. It has no value while nobody does.
type Least struct {
	desc *prometheus.Desc

	mu   sync.Mutex
	next int                    // guarded by mu
	from map[int]func() float64 // guarded by mu
}

// NewLeast returns a registered gauge.
func NewLeast(name, help string) *Least {
	return register(&Least{desc: prometheus.NewDesc(name, help, nil, nil), from: map[int]func() float64{}})
}

// Track asks value for its share whenever the gauge is read, until the function that it
// returns is called.
func (l *Least) Track(value func() float64) (untrack func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := l.next
	l.next++
	l.from[key] = value
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.from, key)
	}
}

// Describe implements prometheus.Collector.
func (l *Least) Describe(out chan<- *prometheus.Desc) { out <- l.desc }

// Collect implements prometheus.Collector.
func (l *Least) Collect(out chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	least, found := 0.0, false
	for _, value := range l.from {
		if v := value(); !found || v < least {
			least, found = v, true
		}
	}
	if found {
		out <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, least)
	}
}
