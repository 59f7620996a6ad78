// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
)

// onNode sets the node name of the controller, so that it can recognize the pods of other nodes.
func onNode(cfg *PodControllerConfig) { cfg.NodeName = "n" }

// until lets time pass until the condition holds, and returns that time, to a tenth of a second. It fails the test after atMost.
func (w *world) until(what string, atMost time.Duration, holds func() bool) time.Duration {
	w.Helper()
	begin := time.Now()
	for !holds() {
		if time.Since(begin) > atMost {
			w.Fatalf("not within %v: %s", atMost, what)
		}
		w.pass(100 * time.Millisecond)
	}
	return time.Since(begin)
}

// create adds n pods, evenly distributed over a time.
func (w *world) create(prefix string, n int, over time.Duration) {
	for i := range n {
		w.api.Create(bound(fmt.Sprint(prefix, i), types.UID(fmt.Sprint("uid-", prefix, i))))
		w.pass(over / time.Duration(n))
	}
}

// allRun reports whether the pods of create run.
func (w *world) allRun(prefix string, n int) bool {
	for i := range n {
		if w.phase(fmt.Sprint(prefix, i)) != corev1.PodRunning {
			return false
		}
	}
	return true
}

// startTimes returns the times between the creation and the start of the pods, sorted.
func (w *world) startTimes(prefix string) (took []time.Duration) {
	h := w.backend.Recorder.History()
	created := map[types.UID]time.Time{}
	for _, e := range h.API {
		if e.Type == watch.Added && strings.HasPrefix(e.Pod.Name, prefix) {
			created[e.Pod.UID] = e.At
		}
	}
	for _, e := range h.Ledger {
		if begin, ours := created[e.UID]; ours && e.Verb == ledger.Start {
			took = append(took, e.At.Sub(begin))
			delete(created, e.UID)
		}
	}
	for uid := range created {
		w.Errorf("pod %s never started", uid)
	}
	slices.Sort(took)
	return took
}

func p99(sorted []time.Duration) time.Duration { return sorted[(len(sorted)*99+99)/100-1] }

// metric returns the sum of a metric over all labels.
func metric(t interface{ Fatal(...any) }, name string) (sum float64) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
