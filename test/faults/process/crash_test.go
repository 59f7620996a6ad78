// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/faultrow"
)

// TestFault01KilledUnderChurn kills the daemon again and again while pods come and go.
func TestFault01KilledUnderChurn(t *testing.T) {
	cycles, perSecond, every := 6, 20, 1500*time.Millisecond
	if faultrow.Long() {
		cycles, perSecond, every = 200, 50, 2*time.Second
	}
	w := newWorld(t, quick)
	steady := w.steady(20)
	var m measured
	w.storm(perSecond, every, &m, func() bool { return m.kills < cycles })
	w.awaitInStep()
	for uid, id := range w.instances() {
		if want, is := steady[uid]; is && want != id {
			t.Errorf("pod %s, which nobody touched, has instance %s, want %s", uid, id, want)
		}
		delete(steady, uid)
	}
	for uid := range steady {
		t.Errorf("pod %s, which nobody touched, is no longer at the backend", uid)
	}
	w.judged()
	ready, converged := m.ready.p(99), m.converged.p(99)
	if budget := faultrow.Budget(5 * time.Second); ready > budget || converged > budget {
		t.Errorf("start→ready took %v (p99), ready→converged %v, want at most %v", ready, converged, budget)
	}
	faultrow.Record(t, 1, fmt.Sprintf("kill -9 every %v, %d times, with %d pods/s of churn", every, m.kills, perSecond),
		"violations 0 in %d pods and %d provider calls; start→ready p99 %v, start→converged p99 %v; instance IDs of %d steady pods unchanged",
		w.records.pods, w.records.calls, ready.Round(time.Millisecond), converged.Round(time.Millisecond), 20)
}
