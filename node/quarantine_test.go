// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestProviderThatListsNothingLosesOnePodAsFast: some providers never list pods, and answer only for single pods.
func TestProviderThatListsNothingLosesOnePodAsFast(t *testing.T) {
	const pods = 20
	b, seen := memory.New(), &nodeConditions{}
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("p", pods, corev1.RestartPolicyNever)
		for i := range 5 {
			b.Lose(fmt.Sprint("d/p", i))
			w.until("the lost pod has failed", 30*time.Second, func() bool { return w.phase(fmt.Sprint("p", i)) == corev1.PodFailed })
		}
		if got := w.phases("p", pods)[corev1.PodRunning]; got != pods-5 {
			w.Errorf("%d pods are Running, want %d", got, pods-5)
		}
		if got, message := seen.statuses(); got != "" {
			w.Errorf("the node said %s: %s", got, message)
		}
	}, onNode, seen.configure, func(cfg *PodControllerConfig) { cfg.Provider = emptyLists{memory.Notifying{Backend: b}} })
}

// TestPresenceInAListIsBelieved: GetPods contains a pod that GetPod does not find.
func TestPresenceInAListIsBelieved(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("p", 3, corev1.RestartPolicyNever)
		b.Script(func(_ context.Context, method, key string) error {
			if method == memory.Get && key == "d/p0" {
				return errdefs.NotFound("no such name")
			}
			return nil
		})
		w.ctl.suspectPod("d/p0")
		w.pass(10 * time.Minute)
		w.wantPhase("p0", corev1.PodRunning)
		if calls := b.Calls(); len(calls) != 3 {
			w.Errorf("calls are %q, want three creates", calls)
		}
	}, onNode)
}

// TestOlderPodOfTheNameProvesNothing: a restored backup contains the predecessors of many pods again.
func TestOlderPodOfTheNameProvesNothing(t *testing.T) {
	const pods = 20
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%v", restart), func(t *testing.T) {
			b := memory.New()
			inWorld(t, b, func(w *world) {
				w.start()
				w.runPods(0, pods)
				backup := w.api.Revision()
				w.pass(time.Minute)
				for i := range pods {
					w.api.Delete("d", fmt.Sprint("p", i), 0)
				}
				w.pass(10 * time.Second)
				w.runPods(0, pods)
				calls := len(b.Calls())
				w.but = []string{"S5"} // predecessors that had ended are wanted again
				if restart {
					w.halt()
				}
				w.api.Restore(backup)
				if restart {
					w.start()
				}
				w.pass(4 * time.Minute)
				if more := b.Calls()[calls:]; len(more) > 0 {
					w.Errorf("calls because of the restore: %q", more)
				}
				w.pass(10 * time.Minute)
			}, onNode)
		})
	}
}

// TestNotFoundAfterARestartWaitsForTheOthers: the first pod that a restarted daemon processes was deleted in the meantime, and the
// backend's cache is not filled.
func TestNotFoundAfterARestartWaitsForTheOthers(t *testing.T) {
	const pods = 20
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("p", pods, corev1.RestartPolicyAlways)
		w.halt()
		for i := range pods / 2 {
			w.api.Delete("d", fmt.Sprint("p", i), 30)
		}
		unfilled(b)
		w.start()
		w.pass(20 * time.Second)
		if n := w.api.Len(); n != pods {
			w.Errorf("%d of %d pods are in the API server while all of them run", n, pods)
		}
		b.Heal()
		w.until("the deleted ones are gone on both sides", time.Minute, func() bool { return w.api.Len() == pods/2 && b.Len() == pods/2 })
	}, onNode)
}

// TestPodSeenAgainIsToldWhatChanged: the pod was changed while the backend did not show it, and the cache was outdated when it reappeared.
func TestPodSeenAgainIsToldWhatChanged(t *testing.T) {
	b := memory.New()
	b.ShowsAfter = 5 * time.Second
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(300 * time.Millisecond)
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Labels = map[string]string{"step": "2"} })
		w.pass(0)
		w.api.Silence()
		w.pass(10 * time.Minute)
		if got := b.Has("d/p").Labels["step"]; got != "2" {
			w.Errorf("the backend has step %q, want 2", got)
		}
	}, onNode)
}

// TestPodsThatCameSinceTheLastListCount: a few orphans are not many if many pods were created since the last list.
func TestPodsThatCameSinceTheLastListCount(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.create("p", 30, time.Second)
		for i := range 5 {
			w.api.Vanish("d", fmt.Sprint("p", i))
		}
		w.api.Compact()
		w.api.Cut()
		w.until("the orphans are gone", 5*time.Second, func() bool { return b.Len() == 25 })
	}, onNode)
}

// TestPodThatShowedIsMissingAnew: the time in which a new pod was hidden does not count when it is missing later.
func TestPodThatShowedIsMissingAnew(t *testing.T) {
	b := memory.New()
	b.ShowsAfter = 5 * time.Second
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(45 * time.Second)
		b.Lie(memory.Lie{Empty: true, Reads: true, For: 20 * time.Second})
		w.pass(time.Minute)
		wantCalls(t, b, "create d/p")
		w.wantPhase("p", corev1.PodRunning)
	}, onNode)
}

// TestLossIsConfirmedByAListOfAfterwards: pods created since the last list count too, so that the last of several pods is not lost at a
// backend that returns nothing.
func TestLossIsConfirmedByAListOfAfterwards(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.create("p", 2, 0)
		w.pass(time.Second)
		w.halt()
		b.Lie(memory.Lie{Empty: true, Reads: true, For: 40 * time.Second})
		w.start()
		w.pass(300 * time.Millisecond)
		w.create("q", 1, 0)
		w.api.Delete("d", "p0", 0)
		w.pass(2 * time.Minute)
		if n := b.Count("create d/p1"); n != 1 {
			w.Errorf("%d CreatePods of the pod that was there all the time, want 1: %q", n, b.Calls())
		}
	}, onNode)
}

// TestOrphanUnderTheNameOfAFailedPodIsStopped: the predecessor reappears when its successor needs no more work.
func TestOrphanUnderTheNameOfAFailedPodIsStopped(t *testing.T) {
	b := memory.New()
	b.ShowsAfter = 5 * time.Second
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "old"))
		w.pass(300 * time.Millisecond)
		b.Inject(memory.Fault{Method: memory.Create, Err: errdefs.InvalidInput("no such image")})
		w.api.Delete("d", "p", 0)
		p := bound("p", "new")
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		w.api.Create(p)
		w.pass(3 * time.Minute)
		w.wantPhase("p", corev1.PodFailed)
		if p := b.Has("d/p"); p != nil && p.Status.Phase == corev1.PodRunning {
			w.Errorf("pod %s still runs at the backend", p.UID)
		}
	}, onNode)
}

// TestNameOfAnEndedPodIsNoAnswer: GetPod returns the ended pod of the name, and lists are empty for a while.
func TestNameOfAnEndedPodIsNoAnswer(t *testing.T) {
	b := memory.New()
	b.KeepsEnded, b.EndedFirst = true, true
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "old"))
		w.pass(10 * time.Second)
		w.api.Delete("d", "p", 0)
		w.pass(time.Second)
		w.api.Create(bound("p", "new"))
		w.pass(time.Minute)
		b.Lie(memory.Lie{Empty: true, For: 40 * time.Second})
		w.ctl.suspectPod("d/p")
		w.pass(10 * time.Minute)
		w.wantPhase("p", corev1.PodRunning)
		if got := b.Instances("new"); len(got) != 1 || b.Count("create d/p") != 2 {
			w.Errorf("instances of the successor are %q after %q, want one", got, b.Calls())
		}
	}, onNode)
}

// TestListThatShowsAPodEndsItsAbsence: a list contains the pod between two answers without it, so each of these is the first.
func TestListThatShowsAPodEndsItsAbsence(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("p", 1, corev1.RestartPolicyAlways)
		b.Inject(memory.Fault{Method: memory.Get, Times: 1, Err: errdefs.NotFound("not yet")})
		w.ctl.suspectPod("d/p0")
		w.pass(9 * time.Second)
		b.Lie(memory.Lie{Empty: true, Reads: true, For: 8 * time.Second})
		w.ctl.relistNow()
		w.pass(time.Minute)
		wantCalls(t, b, "create d/p0")
		w.wantPhase("p0", corev1.PodRunning)
	}, onNode)
}

// TestPodsThatStoppedWhileNobodyLookedAreNoDoubt: many pods are deleted and stop while the daemon is down.
func TestPodsThatStoppedWhileNobodyLookedAreNoDoubt(t *testing.T) {
	const pods = 20
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.runPods(0, pods)
		w.halt()
		for i := range pods {
			w.api.Delete("d", fmt.Sprint("p", i), 30)
			b.Lose(fmt.Sprint("d/p", i))
		}
		w.start()
		w.until("the pods are gone", time.Minute, func() bool { return w.api.Len() == 0 })
	}, onNode)
}

// TestReportEndsAnAbsence: a new pod is hidden, reported between two lists, and then missing again for a shorter time than a loss takes.
func TestReportEndsAnAbsence(t *testing.T) {
	b := memory.New()
	b.ShowsAfter = 50 * time.Second
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(55 * time.Second)
		b.Lie(memory.Lie{Empty: true, Reads: true, For: 12 * time.Second})
		w.pass(2 * time.Minute)
		wantCalls(t, b, "create d/p")
		w.wantPhase("p", corev1.PodRunning)
	}, onNode, func(cfg *PodControllerConfig) { cfg.PodVisibilityTimeout = time.Minute })
}
