// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestLiveReadSavesAPodWithoutUID: a backend that keeps no UIDs has a pod that the cache lacks. It may be the pod of that name in the API
// server.
func TestLiveReadSavesAPodWithoutUID(t *testing.T) {
	b := memory.New()
	b.KeepsNoUID = true
	inWorld(t, b, func(w *world) {
		w.api.Create(bound("p", "a"))
		b.Run(bound("p", "a"))
		w.but = []string{"S5"} // the filter hides the pod, so its status is another's
		w.start()
		w.pass(time.Hour)
		wantCalls(t, b)
		w.api.Delete("d", "p", 0)
		w.pass(time.Minute)
		wantCalls(t, b, "delete d/p")
	}, func(cfg *PodControllerConfig) {
		cfg.PodEventFilterFunc = func(context.Context, *corev1.Pod) bool { return false }
	})
}

// TestOwnAnswerCountsWhileTheCacheIsBehind: a status that returns to the cached value is written, and a written status is not written
// again.
func TestOwnAnswerCountsWhileTheCacheIsBehind(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(10 * time.Second)
		before := len(w.api.Writes("d/p"))
		w.api.Silence()
		for _, message := range []string{"busy", "", "busy"} {
			b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = message })
			w.pass(5 * time.Second)
			if got := w.api.Pod("d", "p").Status.Message; got != message {
				t.Errorf("message is %q, want %q", got, message)
			}
		}
		w.ctl.Kick()
		w.ctl.statusLane.Add("d/p")
		w.pass(5 * time.Second)
		if n := len(w.api.Writes("d/p")) - before; n != 3 {
			t.Errorf("%d writes while the cache is behind, want one for each change", n)
		}
	})
}

// TestRemovalIsNotSentAgainAtEveryEcho: earlier writes reach the cache after the removal was sent. The removal is repeated if the pod
// remains.
func TestRemovalIsNotSentAgainAtEveryEcho(t *testing.T) {
	b := memory.New()
	b.StopTime = 5 * time.Second
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(10 * time.Second)
		w.api.Delete("d", "p", 30)
		w.pass(time.Second)
		w.api.Lag(w.api.Revision(), false)
		w.pass(7 * time.Second) // the pod stops
		if w.api.Pod("d", "p") != nil {
			t.Fatal("the pod is not removed")
		}
		for _, v := range w.api.History("d/p") {
			if v.Pod.DeletionTimestamp != nil && v.Kind != "DELETED" {
				w.api.Lag(v.Revision, false)
				w.pass(3 * time.Second) // a new watch shows it
			}
		}
		if n := w.removals("p"); n != 1 {
			t.Errorf("the removal was sent %d times within %v, want once", n, removeAgain)
		}
		w.pass(2*time.Minute + removeAgain)
		if n := w.removals("p"); n < 2 || n > 4 {
			t.Errorf("the removal was sent %d times while the cache shows the pod, want again at each resync", n)
		}
		w.api.CatchUp()
	})
}

// removals returns the number of removal requests for a pod.
func (w *world) removals(name string) (n int) {
	for _, write := range w.api.Writes("d/" + name) {
		if write.Verb == "delete" {
			n++
		}
	}
	return n
}
