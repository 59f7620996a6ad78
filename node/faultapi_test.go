// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestFault09StatusesOfAnOutageArrive: statuses that the backend reported during an outage of the API server are written at once after it,
// and pods are not touched in between.
func TestFault09StatusesOfAnOutageArrive(t *testing.T) {
	const pods = 50
	lengths := []time.Duration{10 * time.Second, 5 * time.Minute, time.Hour}
	var slowestFirst, slowestLast time.Duration
	for _, length := range lengths {
		b := memory.New()
		var down atomic.Bool
		inWorld(t, b, func(w *world) {
			w.api.Fault = func(_, _, _ string) error {
				if down.Load() {
					return errors.New("connection refused")
				}
				return nil
			}
			w.start()
			for i := range pods {
				w.api.Create(bound(fmt.Sprint("p", i), ""))
			}
			w.pass(time.Minute)
			calls := len(b.Calls())
			down.Store(true)
			for i := range pods {
				b.Change(fmt.Sprint("d/p", i), func(p *corev1.Pod) { p.Status.Message = "changed in the outage" })
			}
			w.pass(length)
			if n := len(b.Calls()) - calls; n != 0 {
				t.Errorf("%d calls changed the backend in an outage of %v", n, length)
			}
			down.Store(false)
			first, last := w.waitForMessages(pods, "changed in the outage")
			slowestFirst, slowestLast = max(slowestFirst, first), max(slowestLast, last)
		})
	}
	if slowestFirst > 2*time.Second || slowestLast > 10*time.Second {
		t.Errorf("after an outage the first status came after %v and the last after %v, want 2 s and 10 s", slowestFirst, slowestLast)
	}
	faultrow.Record(t, 9, fmt.Sprintf("every request fails for 10 s, 5 min, 60 min while %d pods change", pods),
		"0 statuses lost, 0 provider mutations; first write %v after recovery, all after %v", slowestFirst, slowestLast)
}

// waitForMessages waits until pods p0 to pn have the message, and returns the times of the first and of the last.
func (w *world) waitForMessages(n int, message string) (first, last time.Duration) {
	w.Helper()
	begin := time.Now()
	for time.Since(begin) < 5*time.Minute {
		have := 0
		for i := range n {
			if p := w.api.Pod("d", fmt.Sprint("p", i)); p != nil && p.Status.Message == message {
				have++
			}
		}
		if have > 0 && first == 0 {
			first = time.Since(begin)
		}
		if have == n {
			return first, time.Since(begin)
		}
		w.pass(100 * time.Millisecond)
	}
	w.Fatalf("not all of %d pods have the message %q after five minutes", n, message)
	return 0, 0
}
