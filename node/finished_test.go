// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestSomebodyElsesFailedIsNoStop: PodGC or an eviction may mark a pod as failed; while the backend does not answer, this does not confirm
// a stop.
func TestSomebodyElsesFailedIsNoStop(t *testing.T) {
	b := memory.New()
	b.StopTime = 10 * time.Minute
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		b.Script(func(_ context.Context, method, _ string) error {
			if method == "get" || method == "list" {
				return memory.ErrUnwell
			}
			return nil
		})
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Finalizers = []string{"x/y"} })
		w.api.Delete("d", "p", 30)
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed; p.Finalizers = nil })
		w.pass(5 * time.Minute)
		if w.api.Pod("d", "p") == nil {
			t.Error("the API object is gone while the backend still runs the pod")
		}
	})
}

// hoarder is a backend that keeps ended pods forever.
type hoarder struct {
	memory.Notifying
	deletes *atomic.Int32
}

func (h hoarder) DeletePod(_ context.Context, pod *corev1.Pod) error {
	h.deletes.Add(1)
	if kept := h.Has(memory.Key(pod)); kept != nil && kept.Status.Phase == corev1.PodRunning {
		h.Change(memory.Key(pod), func(p *corev1.Pod) { *p = *memory.Ended(p, 0) })
	}
	return nil
}

func TestBackendThatKeepsFinishedPods(t *testing.T) {
	b := memory.New()
	var deletes atomic.Int32
	inWorld(t, b, func(w *world) {
		w.start()
		const n = 15
		for i := range n {
			w.api.Create(bound(fmt.Sprint("p", i), ""))
		}
		w.pass(time.Second)
		for i := range n {
			w.api.Delete("d", fmt.Sprint("p", i), -1)
		}
		w.pass(time.Hour)
		if w.api.Len() != 0 {
			t.Errorf("%d pods are left in the API server", w.api.Len())
		}
		if got := deletes.Load(); got != n {
			t.Errorf("%d deletes, want one for each of %d pods", got, n)
		}
		w.ctl.worker.orphans.mu.Lock()
		if held := len(w.ctl.worker.orphans.missing); held != 0 {
			t.Errorf("%d finished pods count as orphans", held)
		}
		w.ctl.worker.orphans.mu.Unlock()
		w.api.Create(bound("p0", "again")) // as a StatefulSet does
		w.pass(time.Minute)
		w.wantPhase("p0", corev1.PodRunning)
		for i := range n {
			b.Lose(fmt.Sprint("d/p", i))
		}
		w.api.Delete("d", "p0", 0)
		w.pass(10 * time.Minute)
		if left := w.ctl.states.size(); left != 0 {
			t.Errorf("%d states are left", left)
		}
	}, func(cfg *PodControllerConfig) { cfg.Provider = hoarder{memory.Notifying{Backend: b}, &deletes} })
}

// TestEndedInTimeAlthoughTheAPIServerIsDown: the deadline does not apply to a pod that ended before it, even if its status is written late.
func TestEndedInTimeAlthoughTheAPIServerIsDown(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		p := bound("p", "a")
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		seconds := int64(90)
		p.Spec.ActiveDeadlineSeconds = &seconds
		w.api.Create(p)
		w.pass(10 * time.Second)
		var down atomic.Bool
		down.Store(true)
		w.api.Fault = func(verb, _, _ string) error {
			if verb == "patch" && down.Load() {
				return apierrors.NewServiceUnavailable("try later")
			}
			return nil
		}
		b.Change("d/p", func(p *corev1.Pod) { *p = *memory.Ended(p, 0) })
		w.pass(10 * time.Minute)
		down.Store(false)
		w.pass(2 * time.Minute)
		w.wantPhase("p", corev1.PodSucceeded)
	})
}

// TestFinishedPodsCostNothing: an ended pod is processed once more, and not at every resync while its object exists.
func TestFinishedPodsCostNothing(t *testing.T) {
	for name, forgets := range map[string]bool{"kept": false, "forgotten": true} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			inWorld(t, b, func(w *world) {
				var gets atomic.Int32
				b.Script(func(_ context.Context, method, _ string) error {
					if method == "get" {
						gets.Add(1)
					}
					return nil
				})
				p := bound("p", "a")
				p.Spec.RestartPolicy = corev1.RestartPolicyNever
				for range 2 { // lives of the daemon
					w.start()
					if w.api.Pod("d", "p") == nil {
						w.api.Create(p)
						w.pass(time.Second)
						b.Change("d/p", func(p *corev1.Pod) { *p = *memory.Ended(p, 0) })
						if forgets {
							b.Lose("d/p")
						}
					}
					w.pass(time.Minute)
					before := gets.Load()
					w.pass(time.Hour)
					if n := gets.Load() - before; n > 0 {
						t.Errorf("%d calls of GetPod in an hour for a pod that has ended", n)
					}
					if !forgets { // a pod that still runs must be noticed
						b.Change("d/p", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
						w.pass(2 * time.Minute)
						if b.Has("d/p") != nil {
							t.Error("a pod that ended runs again, and nobody stops it")
						}
						forgets = true
					}
					w.halt()
				}
			})
		})
	}
}

// TestEndThatIsReportedAgainIsNews: after a late report, a repeated report of the same end counts at once.
func TestEndThatIsReportedAgainIsNews(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.but = []string{"S3"} // the reports in this test are wrong on purpose
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		b.Script(func(_ context.Context, method, _ string) error {
			if method == "delete" {
				return memory.ErrUnwell
			}
			return nil
		})
		w.api.Delete("d", "p", 30)
		w.pass(time.Second)
		running := b.Has("d/p").DeepCopy()
		b.Tell(memory.Ended(running.DeepCopy(), 0))
		b.Tell(running)
		w.pass(time.Minute) // long before the next try to delete it
		b.Tell(memory.Ended(running.DeepCopy(), 0))
		w.pass(time.Second)
		if w.api.Pod("d", "p") != nil {
			t.Error("the API object is still there after the end was reported again")
		}
		b.Script(nil)
	})
}

// TestRelapsedPodIsRemovedWhenItHasStopped: the end of a deleted pod is reported, and then that it runs. So it has not stopped, and the
// backend must stop it first.
func TestRelapsedPodIsRemovedWhenItHasStopped(t *testing.T) {
	b := memory.New()
	var unwell atomic.Bool
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		unwell.Store(true)
		b.Script(func(_ context.Context, method, _ string) error {
			if method == "delete" && unwell.Load() {
				return memory.ErrUnwell
			}
			return nil
		})
		w.api.Delete("d", "p", 30)
		w.pass(time.Second)
		var down atomic.Bool // until both are reported, because the end counts in between
		down.Store(true)
		w.api.Fault = func(verb, _, _ string) error {
			if (verb == "patch" || verb == "delete") && down.Load() {
				return apierrors.NewServiceUnavailable("try later")
			}
			return nil
		}
		running := b.Has("d/p").DeepCopy()
		b.Tell(memory.Ended(running.DeepCopy(), 0))
		b.Tell(running)
		down.Store(false)
		w.pass(time.Minute)
		if w.api.Pod("d", "p") == nil {
			t.Error("the API object is gone while the backend runs the pod and fails to stop it")
		}
		unwell.Store(false)
		w.pass(2 * time.Minute)
		if w.api.Pod("d", "p") != nil || b.Has("d/p") != nil {
			t.Errorf("the pod is there after its stop: in the API server %v, at the backend %v", w.api.Pod("d", "p") != nil, b.Has("d/p") != nil)
		}
	})
}
