// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// durations are the times of many repetitions.
type durations []time.Duration

// p returns a percentile.
func (d durations) p(percent int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Clone(d)
	slices.Sort(sorted)
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

// measured has the measurements of a storm.
type measured struct {
	kills            int
	rss              int       // of the daemon, at most, in bytes
	ready, converged durations // since the start of the daemon
}

// steady starts a daemon and long-running pods, and returns the IDs of their instances.
func (w *world) steady(n int) map[types.UID]string {
	w.Helper()
	c := w.start()
	for i := range n {
		a := &actor{world: w, name: fmt.Sprintf("steady-%d", i), on: w.nodeOf(i)}
		a.create(corev1.RestartPolicyAlways)
	}
	// The watch may show a pod after its create was answered, so awaitInStep alone could return with fewer than
	// n pods.
	w.await(fmt.Sprintf("%d pods run", n), func() bool { return len(w.instances()) == n })
	w.awaitInStep()
	c.kill()
	return w.instances()
}

// kept checks that untouched pods still have their instances.
func (w *world) kept(before map[types.UID]string) {
	w.Helper()
	now := w.instances()
	for uid, want := range before {
		if now[uid] != want {
			w.Errorf("pod %s, which nobody touched, has instance %q, want %s", uid, now[uid], want)
		}
	}
}

// instances returns the ID of the instance of each pod at the backend.
func (w *world) instances() map[types.UID]string {
	w.Helper()
	ids := map[types.UID]string{}
	for uid, list := range w.backend.Live() {
		ids[uid] = list[0]
		if len(list) > 1 {
			w.Errorf("S1: pod %s has the instances %v", uid, list)
		}
	}
	return ids
}

// patientEvery selects the lives of the daemon that last until all pods are in step. A pod that was deleted by
// force while no daemon ran needs a daemon that lives longer than the others. With too many such pods, the
// daemon would stop none of them for minutes, as after a loss of the API server's data.
const patientEvery = 4

// storm kills the daemon once per period, while pods come and go, as long as more returns true.
func (w *world) storm(perSecond int, period time.Duration, m *measured, more func() bool) {
	w.Helper()
	churn := w.churnAt(perSecond)
	for more() {
		w.backend.Replay(rand.IntN(2) == 0)
		since := time.Now()
		waiting, all := w.records.outOfStep(true), w.records.outOfStep(false)
		c := w.launch()
		pass(w.Context(), period/2+rand.N(period))
		c.awaitReady()
		m.ready = append(m.ready, c.readyAt.Sub(c.began))
		if last := w.awaitStepped(waiting, since); !last.IsZero() {
			m.converged = append(m.converged, last.Sub(since))
		}
		if m.kills%patientEvery == patientEvery-1 {
			w.awaitStepped(all, since)
		}
		m.rss = max(m.rss, c.memory("VmHWM"))
		c.kill()
		c.forget()
		m.kills++
		w.records.retire()
	}
	w.start()
	churn.stop()
}

// awaitStepped waits until each of the pods was in step after since, and returns the time when the last pod was
// in step.
func (w *world) awaitStepped(pods []*podRecord, since time.Time) (last time.Time) {
	w.Helper()
	w.await("the pods that waited for the daemon are in step", func() bool {
		w.records.mu.Lock()
		defer w.records.mu.Unlock()
		for _, p := range pods {
			if p.stepped.Before(since) {
				return false
			}
			if p.stepped.After(last) {
				last = p.stepped
			}
		}
		return true
	})
	return last
}

// awaitInStep waits until both sides agree on all pods.
func (w *world) awaitInStep() {
	w.Helper()
	w.await("all pods are in step", w.areInStep)
}

func (w *world) areInStep() bool { return len(w.records.outOfStep(false)) == 0 }
