// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestContainerWithoutProbes(t *testing.T) {
	inBubble(t, func(w *world) {
		c := running("a")
		w.want("a", "unknown")
		w.p.Ensure(c)
		w.want("a", "started=true ready=true failed=")
		c.Running = false
		w.p.Ensure(c)
		w.want("a", "started=false ready=false failed=")
		w.p.Forget("a")
		w.want("a", "unknown")
		if w.changes != 2 {
			t.Errorf("%d changes told, want 2", w.changes)
		}
	})
}

func TestInitialDelayAndPeriod(t *testing.T) {
	inBubble(t, func(w *world) {
		w.p.Ensure(running("a", liveness(execProbe("live", delay(3), period(5))), readiness(execProbe("ready", period(4)))))
		w.p.Ensure(running("b", liveness(execProbe("soon", period(7)))))
		w.after(9 * time.Second)
		w.wantRuns("0s ready", "3s live", "4s ready", "7s soon", "8s live", "8s ready")
	})
}

func TestThresholds(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answers("ready", errExit)
		w.p.Ensure(running("a", readiness(execProbe("ready", period(1), succeed(2), fail(3)))))
		w.after(500 * time.Millisecond)
		w.want("a", "started=true ready=false failed=")
		w.answers("ready", nil)
		w.after(1500 * time.Millisecond)
		w.want("a", "started=true ready=false failed=") // one success of two
		w.after(2500 * time.Millisecond)
		w.want("a", "started=true ready=true failed=")
		w.answers("ready", errExit)
		w.after(4500 * time.Millisecond)
		w.want("a", "started=true ready=true failed=") // two failures of three
		w.after(5500 * time.Millisecond)
		w.want("a", "started=true ready=false failed=")
	})
}

func TestLivenessFails(t *testing.T) {
	inBubble(t, func(w *world) {
		grace := func(p *corev1.Probe) { p.TerminationGracePeriodSeconds = ptr.To[int64](7) }
		w.answers("live", errExit)
		w.p.Ensure(running("a", liveness(execProbe("live", grace))))
		w.after(29 * time.Second)
		w.want("a", "started=true ready=true failed=")
		w.after(31 * time.Second)
		w.want("a", "started=true ready=true failed=Liveness")
		if r, _ := w.p.Result("a"); r.Grace == nil || *r.Grace != 7 {
			t.Errorf("grace %v, want that of the probe, 7", r.Grace)
		}
		w.after(2 * time.Minute)
		w.wantRuns("10s live", "20s live", "30s live") // no more, because the container must be killed
		if !slices.Equal(w.events, slices.Repeat([]string{"app Warning Unhealthy Liveness probe failed: said"}, 3)) {
			t.Errorf("events %q", w.events)
		}

		// The probes of another instance of the container start from the beginning.
		w.p.Ensure(running("b", liveness(execProbe("live"))))
		w.want("b", "started=true ready=true failed=")
		w.want("a", "started=true ready=true failed=Liveness")
	})
}

func TestStartupGatesTheOthers(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answers("start", errExit)
		w.p.Ensure(running("a", startup(execProbe("start", period(5), fail(9))),
			liveness(execProbe("live", period(3))), readiness(execProbe("ready", period(60)))))
		w.after(11 * time.Second)
		w.want("a", "started=false ready=false failed=")
		w.answers("start", nil)
		w.after(15 * time.Second)
		w.want("a", "started=true ready=true failed=") // the readiness probe runs at once
		w.after(22 * time.Second)
		w.wantRuns("5s start", "10s start", "15s start", "15s ready", "18s live", "21s live")
	})
}

func TestStartupFails(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answers("start", errExit)
		w.p.Ensure(running("a", startup(execProbe("start", period(5), fail(2))), liveness(execProbe("live")), readiness(execProbe("ready"))))
		w.after(time.Minute)
		w.want("a", "started=false ready=false failed=Startup")
		w.wantRuns("5s start", "10s start")
	})
}

func TestErrorsAreTriedAgainAndCountNothing(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answers("ready", errRuntime)
		w.p.Ensure(running("a", readiness(execProbe("ready", fail(1)))))
		w.after(time.Second)
		w.wantRuns("0s ready", "0s ready", "0s ready")
		want := "app Warning Unhealthy Readiness probe errored and resulted in unknown state: the runtime is away"
		if !slices.Equal(w.events, []string{want}) {
			t.Errorf("events %q, want %q", w.events, want)
		}
		w.answers("ready", nil)
		w.after(11 * time.Second)
		w.want("a", "started=true ready=true failed=")
		w.answers("ready", errRuntime)
		w.after(41 * time.Second)
		w.want("a", "started=true ready=true failed=")
	})
}

func TestStoppedContainerIsNotReadyAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		c := running("a", readiness(execProbe("ready")), liveness(execProbe("live")))
		w.p.Ensure(c)
		w.after(time.Second)
		w.want("a", "started=true ready=true failed=")
		c.Running = false
		w.p.Ensure(c)
		w.want("a", "started=false ready=false failed=")
		w.after(time.Minute)
		w.wantRuns("0s ready")
	})
}

// TestOutcomeOfStoppedContainerIsDropped: the result of a probe does not count if the container was stopped in the meantime.
func TestOutcomeOfStoppedContainerIsDropped(t *testing.T) {
	inBubble(t, func(w *world) {
		stop := make(chan struct{})
		w.answer["live"] = func() error { <-stop; return errExit }
		c := running("a", liveness(execProbe("live", fail(1))))
		w.p.Ensure(c)
		w.after(10 * time.Second)
		c.Running = false
		w.p.Ensure(c)
		close(stop)
		w.after(11 * time.Second)
		w.want("a", "started=false ready=false failed=")
		if len(w.events) != 0 {
			t.Errorf("events %q, want none", w.events)
		}
	})
}

func TestTerminatingPod(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answers("live", errExit)
		c := running("a", liveness(execProbe("live", fail(1))), readiness(execProbe("ready", fail(1), period(1))))
		w.p.Ensure(c)
		w.after(time.Second)
		c.Pod = c.Pod.DeepCopy()
		c.Pod.DeletionTimestamp = ptr.To(metav1.Now())
		w.p.Ensure(c)
		w.answers("ready", errExit)
		w.after(time.Minute)
		w.want("a", "started=true ready=false failed=") // readiness is still asked
		for _, run := range w.runs {
			if run == "10s live" {
				t.Errorf("liveness was asked of a terminating pod: %q", w.runs)
			}
		}
	})
}

// TestSlowProbe: a probe that takes longer than its period runs again at once, and never twice at a time.
func TestSlowProbe(t *testing.T) {
	inBubble(t, func(w *world) {
		w.answer["ready"] = func() error { time.Sleep(3 * time.Second); return nil }
		w.p.Ensure(running("a", readiness(execProbe("ready", period(2)))))
		w.after(7 * time.Second)
		w.wantRuns("0s ready", "3s ready", "6s ready")
	})
}

// TestProbeAfterALongOne: runs that were missed during a long probe are skipped.
func TestProbeAfterALongOne(t *testing.T) {
	inBubble(t, func(w *world) {
		first := true
		w.answer["ready"] = func() error {
			if first {
				time.Sleep(7 * time.Second)
			}
			first = false
			return nil
		}
		w.p.Ensure(running("a", readiness(execProbe("ready", period(2)))))
		w.after(10 * time.Second)
		w.wantRuns("0s ready", "7s ready", "9s ready")
	})
}

func TestForgetStopsProbesAndMetrics(t *testing.T) {
	inBubble(t, func(w *world) {
		w.p.Ensure(running("a", readiness(execProbe("ready"))))
		w.after(time.Second)
		if n := seriesOf(t, w.p); n != 2 {
			t.Errorf("%d series, want a counter and a histogram", n)
		}
		w.p.Ensure(running("b", readiness(execProbe("ready"))))
		w.p.Forget("a")
		w.after(2 * time.Second)
		if n := seriesOf(t, w.p); n != 2 {
			t.Errorf("%d series, want those of the container that was started again", n)
		}
		w.p.Forget("b")
		w.after(time.Minute)
		if n := seriesOf(t, w.p); n != 0 {
			t.Errorf("%d series left", n)
		}
		w.wantRuns("0s ready", "1s ready")
	})
}

func seriesOf(t *testing.T, p *Prober) int {
	t.Helper()
	families, err := p.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range families {
		n += len(f.GetMetric())
	}
	return n
}

func TestRunWaitsForProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.answer["ready"] = func() error { time.Sleep(5 * time.Second); return nil }
		w.p.Ensure(running("a", readiness(execProbe("ready"))))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		w.p.Run(ctx)
		if took := time.Since(w.start); took != 5*time.Second {
			t.Errorf("Run returned after %s, want after the probe, 5s", took)
		}
		w.want("a", "started=true ready=false failed=")
	})
}
