// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// TestFault01KilledUnderChurn kills the daemon again and again while pods come and go. A pod that existed before a restart and never ran
// may have reached the backend a moment before. If the provider does not know whether its answers are complete, a deletion of such a pod is
// confirmed only after the time that a pod may take to appear.
func TestFault01KilledUnderChurn(t *testing.T) {
	for name, tt := range map[string]struct {
		complete bool
		within   time.Duration
	}{
		"a provider that knows what it has": {true, 5 * time.Second},
		"any provider":                      {false, 30*time.Second + 5*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killedUnderChurn(t, name, tt.complete, tt.within)
		})
	}
}

func killedUnderChurn(t *testing.T, who string, complete bool, within time.Duration) {
	cycles, perSecond, every := 6, 10, 1500*time.Millisecond
	if faultrow.Long() {
		cycles, perSecond, every = 200, 50, 2*time.Second
	}
	w := newWorld(t, quick)
	w.flags.Complete = complete
	steady := w.steady(50)
	var m measured
	w.storm(perSecond, every, &m, func() bool { return m.kills < cycles })
	w.awaitInStep()
	w.kept(steady)
	w.judged()
	ready, converged := m.ready.p(99), m.converged.p(99)
	percent := 50 // on a busy machine
	if faultrow.Strict() {
		percent = 99
	}
	if took, budget := m.ready.p(percent), faultrow.Budget(5*time.Second); took > budget {
		t.Errorf("start→ready took %v (p%d), want at most %v", took, percent, budget)
	}
	if took, budget := m.converged.p(percent), faultrow.Budget(within); took > budget {
		t.Errorf("start→converged took %v (p%d), want at most %v", took, percent, budget)
	}
	faultrow.Record(t, 1, fmt.Sprintf("%s, kill -9 every %v, %d times, with %d pods/s of churn", who, every, m.kills, perSecond),
		"violations 0 in %d pods and %d provider calls; start→ready p99 %v, start→all in step p99 %v; instance IDs of %d steady pods unchanged",
		w.records.pods, w.records.calls, ready.Round(time.Millisecond), converged.Round(time.Millisecond), len(steady))
}
