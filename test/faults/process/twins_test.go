// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// takeover is the time limit for a twin to act for the node.
const takeover = 15 * time.Second

// TestFault05TwinTakesOver runs two daemons for one node while pods come and go. It takes the acting daemon away
// in three ways, and the other daemon takes over.
func TestFault05TwinTakesOver(t *testing.T) {
	t.Parallel()
	rounds := 1
	if faultrow.Long() {
		rounds = 33
	}
	w := newWorld(t, quick)
	steady := w.steady(10)
	acting := w.start()
	churn := w.churnAt(5)
	var took durations
	frozen := 0
	for range rounds {
		for _, way := range []string{"kill", "freeze", "stop"} {
			twin := w.launch()
			w.standsBy(twin)
			began := time.Now()
			switch way {
			case "kill":
				acting.kill()
			case "freeze":
				acting.signal(syscall.SIGSTOP)
			case "stop":
				acting.stop()
			}
			twin.awaitReady()
			w.awaitCreated() // by the twin: no other process can
			took = append(took, time.Since(began))
			if way == "freeze" {
				frozen++
				acting.signal(syscall.SIGCONT) // it must check the lease before it does anything
				pass(w.Context(), 3*time.Second)
				acting.kill()
			}
			acting = twin
		}
	}
	churn.stop()
	w.awaitInStep()
	w.kept(steady)
	w.judged()
	if longest := took.p(100); longest > faultrow.Budget(takeover) {
		t.Errorf("the twin took %v to take over, want at most %v: %v", longest, takeover, took)
	}
	faultrow.Record(t, 5, fmt.Sprintf("%d takeovers by a twin: after kill -9, SIGSTOP and SIGTERM, with 5 pods/s of churn; %d frozen daemons thawed", len(took), frozen),
		"duplicate creates 0, violations 0 in %d pods; a takeover took at most %v", w.records.pods, took.p(100).Round(time.Millisecond))
}

// TestFault03ThawedDaemonLooksFirst freezes the daemon while a twin waits, and thaws it when the twin has taken
// over: it must not act. Then it freezes and thaws a daemon without a twin: this daemon goes on.
func TestFault03ThawedDaemonLooksFirst(t *testing.T) {
	t.Parallel()
	naps := []time.Duration{15 * time.Second}
	if faultrow.Long() {
		naps = []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 400 * time.Second}
	}
	w := newWorld(t, quick)
	steady := w.steady(10)
	acting := w.start()
	churn := w.churnAt(5)
	for _, nap := range naps {
		twin := w.launch()
		w.standsBy(twin)
		acting.signal(syscall.SIGSTOP)
		pass(w.Context(), nap)
		twin.awaitReady()
		acting.signal(syscall.SIGCONT)
		pass(w.Context(), 3*time.Second) // it must not act in this time
		acting.kill()
		acting = twin

		acting.signal(syscall.SIGSTOP) // without a twin it continues after it has checked the lease
		pass(w.Context(), nap/3)
		acting.signal(syscall.SIGCONT)
		w.awaitCreated()
	}
	churn.stop()
	w.awaitInStep()
	w.kept(steady)
	w.judged()
	faultrow.Record(t, 3, fmt.Sprintf("SIGSTOP for %v with a twin that took over meanwhile, and for a third of that without one, with 5 pods/s of churn", naps),
		"violations 0 in %d pods and %d provider calls; instance IDs of %d steady pods unchanged", w.records.pods, w.records.calls, len(steady))
}

// standsBy waits until the daemon logs that it stands by for another daemon.
func (w *world) standsBy(c *child) {
	w.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); pass(w.Context(), 50*time.Millisecond) {
		select {
		case <-c.ready:
			w.Fatal("two daemons act for one node")
		default:
		}
		if c.said.Has("standing by") {
			return
		}
	}
	w.Fatalf("the twin does not stand by:\n%s", c.said.Tail())
}

// awaitCreated waits until the backend creates a further pod.
func (w *world) awaitCreated() {
	w.Helper()
	w.records.mu.Lock()
	before := w.records.creates
	w.records.mu.Unlock()
	w.await("a pod is created", func() bool {
		w.records.mu.Lock()
		defer w.records.mu.Unlock()
		return w.records.creates > before
	})
}
