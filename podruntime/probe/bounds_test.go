// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestNoMoreProbesAtOnceThanAllowed: no more than AtOnce probes run at a time. The other probes wait and run
// later. All of them end with Run.
func TestNoMoreProbesAtOnceThanAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, all atomic.Int32
		p := New(Config{AtOnce: 3, Exec: func(context.Context, string, []string, time.Duration) ([]byte, []byte, error) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			all.Add(1)
			return nil, nil, nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.Run(ctx) }()
		for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
			p.Ensure(running(id, readiness(execProbe("ready", period(60)))))
		}
		time.Sleep(3500 * time.Millisecond)
		cancel()
		<-done
		if most.Load() != 3 || all.Load() < 9 {
			t.Errorf("%d at once, and %d in 3.5 s, want 3 and 9", most.Load(), all.Load())
		}
	})
}

// TestProbeThatCannotBeMadeIsTriedAsOftenAsConfigured: Tries limits the consecutive attempts of a probe that cannot run.
func TestProbeThatCannotBeMadeIsTriedAsOftenAsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.p = New(Config{Exec: w.exec, Tries: 1})
		w.begin()
		w.answers("ready", errRuntime)
		w.p.Ensure(running("a", readiness(execProbe("ready"))))
		w.after(time.Second)
		w.wantRuns("0s ready")
	})
}

// TestExecMayTakeAsMuchLongerAsConfigured: an exec probe fails only after its time limit and the configured
// ExecSlack.
func TestExecMayTakeAsMuchLongerAsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{ExecSlack: time.Minute, Exec: func(ctx context.Context, _ string, _ []string, _ time.Duration) ([]byte, []byte, error) {
			<-ctx.Done()
			return nil, nil, ctx.Err()
		}})
		begin := time.Now()
		o, _, err := p.askExec(t.Context(), &corev1.ExecAction{}, running("a"), time.Second)
		if took := time.Since(begin); o != failure || err != nil || took != 61*time.Second {
			t.Errorf("got %s, %v after %s, want a failure after 61 s", o, err, took)
		}
	})
}
