// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestSeriesWithTheLabelsOfTheOverflowIsMergedIntoIt: a source with the labels of the overflow series is merged
// into this series. Otherwise a gather would fail because of two values of one series.
func TestSeriesWithTheLabelsOfTheOverflowIsMergedIntoIt(t *testing.T) {
	g := &Gauge{desc: prometheus.NewDesc("g", "help", []string{"a", "b"}, nil), labels: 2, merge: Sum, from: map[int]source{}}
	const more = 50 // the sources are read in random order: some of these are read after the limit is reached
	for i := range maxSeries {
		g.Track(func() float64 { return 1 }, strconv.Itoa(i), "x")
	}
	for range more {
		g.Track(func() float64 { return 1 }, overflow, overflow)
		g.Track(func() float64 { return 1 }, overflow, "x")
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(g)
	for range 20 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		total := 0.0
		for _, m := range families[0].Metric {
			total += m.Gauge.GetValue()
		}
		if want := float64(maxSeries + 2*more); total != want {
			t.Fatalf("the sum of all series is %v, want %v", total, want)
		}
	}
}
