// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// What random schedules found about pods of one name, as tests.

// TestLateCreateCountsForItsOwnPod replaces a pod while its CreatePod is running: its acceptance does not apply to the next pod.
func TestLateCreateCountsForItsOwnPod(t *testing.T) {
	b := memory.New()
	b.KeepsNoUID = true // otherwise the backend would detect the mistake
	b.Inject(memory.Fault{Method: memory.Create, Delay: 8 * time.Second, Times: 2})
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(300 * time.Millisecond)
		w.api.Delete("d", "p", 0)
		w.api.Create(bound("p", "b"))
		w.pass(time.Minute)
		w.wantPhase("p", corev1.PodRunning)
		wantCalls(t, b, "create d/p", "delete d/p", "create d/p")
		if len(b.Instances("a")) != 0 || len(b.Instances("b")) != 1 {
			t.Errorf("instances are %q of the old pod and %q of the new one, want none and one", b.Instances("a"), b.Instances("b"))
		}
	})
}

// TestPollIsAboutThePodThatWasAccepted replaces a pod at a backend that does not report: when the new pod is first processed, the status of
// the name still belongs to the old pod.
func TestPollIsAboutThePodThatWasAccepted(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		b.Inject(memory.Fault{Method: memory.Get, Delay: 8 * time.Second, Times: 2})
		w.api.Create(never(bound("p", "a")))
		w.pass(300 * time.Millisecond)
		w.api.Delete("d", "p", 0)
		w.api.Create(never(bound("p", "b")))
		w.pass(time.Minute)
		for _, v := range w.api.History("d/p") {
			if v.Pod.UID == "b" && v.Pod.Status.Phase == corev1.PodRunning && len(b.Instances("b")) == 0 {
				t.Errorf("at %v the new pod runs by the status of the old one", v.At)
			}
		}
		w.wantPhase("p", corev1.PodRunning)
	}, silent)
}

// TestFinalStatusWithoutUIDAfterRestart deletes a pod while the daemon is down: the last status belongs to this pod, even if the backend
// keeps no UIDs.
func TestFinalStatusWithoutUIDAfterRestart(t *testing.T) {
	b := memory.New()
	b.KeepsNoUID, b.ExitCode = true, 3
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.halt()
		w.api.Delete("d", "p", 5)
		w.start()
		w.pass(time.Minute)
		history := w.api.History("d/p")
		last := history[len(history)-1].Pod
		if w.api.Len() != 0 || last.Status.Phase != corev1.PodFailed || exitCode(last) != 3 {
			t.Errorf("%d pods are left; the last was %s with exit code %d, want Failed with 3", w.api.Len(), last.Status.Phase, exitCode(last))
		}
	})
}

func exitCode(pod *corev1.Pod) int32 {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			return c.State.Terminated.ExitCode
		}
	}
	return -1
}

// never returns the pod with the restart policy Never.
func never(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	return pod
}

// TestDeletedPodDoesNotWaitForAnOlderOne deletes a pod that never started, because the backend is still stopping the previous pod of the
// name.
func TestDeletedPodDoesNotWaitForAnOlderOne(t *testing.T) {
	b := memory.New()
	b.StopTime = 5 * time.Minute
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "old"))
		w.pass(time.Second)
		w.api.Delete("d", "p", 0)
		w.api.Create(bound("p", "new"))
		w.pass(10 * time.Second)
		w.api.Delete("d", "p", 5)
		w.pass(10 * time.Second)
		if p := w.api.Pod("d", "p"); p != nil {
			t.Errorf("the pod that was never started is still there 10 s after its deletion: %+v", p.Status)
		}
		w.pass(10 * time.Minute)
		if n := b.Count("create d/p"); n != 1 {
			t.Errorf("%d creates, want only that of the old pod", n)
		}
		if b.Len() != 0 || w.ctl.states.size() != 0 {
			t.Errorf("%d pods are left at the backend, and %d states", b.Len(), w.ctl.states.size())
		}
	})
}

// TestDeletedWhileTheBackendIsAsked force-deletes a pod during a slow GetPod: it is not started.
func TestDeletedWhileTheBackendIsAsked(t *testing.T) {
	b := memory.New()
	b.Inject(memory.Fault{Method: memory.Get, Delay: 5 * time.Second, Times: 1})
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.api.Delete("d", "p", 0)
		w.pass(time.Minute)
		wantCalls(t, b)
	})
}

// TestAnotherPodOfTheNameIsAskedOnceToStop: its stop is slow. Neither lists that still contain it nor a GetPod that returns the wrong one
// of the two cause another stop request.
func TestAnotherPodOfTheNameIsAskedOnceToStop(t *testing.T) {
	b := memory.New()
	b.StopTime = 20 * time.Second
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("p", 1, corev1.RestartPolicyAlways)
		older := bound("p0", "x")
		older.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
		b.Extra(older)
		w.pass(relistPeriod + time.Second) // a list has both
		w.ctl.suspectPod("d/p0")
		w.pass(2 * time.Minute)
		wantCalls(t, b, "create d/p0", "delete d/p0")
		w.wantPhase("p0", corev1.PodRunning)
	}, onNode, func(c *PodControllerConfig) { c.Provider = namesOthers{c.Provider.(memory.Notifying)} })
}

// namesOthers returns the last listed pod of the name from GetPod.
type namesOthers struct{ memory.Notifying }

func (n namesOthers) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pods, err := n.GetPods(ctx)
	if err != nil {
		return nil, err
	}
	for _, pod := range slices.Backward(pods) {
		if pod.Namespace == namespace && pod.Name == name {
			return pod, nil
		}
	}
	return nil, errdefs.NotFound("no such pod")
}

// TestFurtherInstancesAreToldOnceAndStopWithThePod: the backend started a pod twice, and the node cannot decide which instance to keep.
func TestFurtherInstancesAreToldOnceAndStopWithThePod(t *testing.T) {
	for name, configs := range map[string][]func(*PodControllerConfig){"reported": {onNode}, "polled": {onNode, silent}, "reported and kept": {onNode}} {
		t.Run(name, func(t *testing.T) {
			b, log := memory.New(), &eventLog{}
			b.KeepsEnded = name == "reported and kept"
			inWorld(t, b, func(w *world) {
				w.but = []string{"S1"} // the injected fault
				w.start()
				w.api.Create(bound("p", "a"))
				w.pass(time.Minute)
				b.Extra(bound("p", "a"))
				before := len(w.api.Writes("d/p"))
				w.pass(time.Hour)
				if told := log.of(eventSecondPod); len(told) != 1 {
					w.Errorf("%d events in an hour, want 1: %v", len(told), told)
				}
				if n := len(w.api.Writes("d/p")) - before; n != 0 {
					w.Errorf("%d patches of the pod in an hour, want none: only one instance tells its status", n)
				}
				wantCalls(t, b, "create d/p")
				w.api.Delete("d", "p", 1)
				w.pass(2 * time.Minute)
				if w.api.Pod("d", "p") != nil || len(b.Instances("a")) != 0 {
					w.Errorf("after its deletion, the pod is in the API server: %v, and the instances %q run at the backend", w.api.Pod("d", "p") != nil, b.Instances("a"))
				}
			}, append(configs, log.use)...)
		})
	}
}

// TestTwoMorePodsOfANameBothStop: both are stopped, although the backend keeps the stopped one, and GetPod returns the ended wanted pod.
func TestTwoMorePodsOfANameBothStop(t *testing.T) {
	b := memory.New()
	b.KeepsEnded, b.EndedFirst = true, true
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(never(bound("p", "a")))
		w.pass(time.Minute)
		b.Extra(bound("p", "x"))
		b.Extra(bound("p", "y"))
		if err := w.drain(w.Context(), DrainGroups(3*time.Minute, 30*time.Second)...); err != nil {
			t.Error(err)
		}
		w.pass(3 * time.Minute)
		for _, uid := range []types.UID{"a", "x", "y"} {
			if ran := b.Instances(uid); len(ran) != 0 {
				t.Errorf("%v of pod %s run at the backend, want none", ran, uid)
			}
		}
		w.api.Delete("d", "p", 1) // now the backend has three unwanted pods, and all were asked to stop
		w.pass(3 * time.Minute)
		wantCalls(t, b, "create d/p", "delete d/p", "delete d/p", "delete d/p")
	}, onNode, silent)
}

// TestWhatHasLeftIsToldToStopOnce: a backend that keeps ended pods has every pod that ever had the name, and shows all of them whenever the
// name is unused.
func TestWhatHasLeftIsToldToStopOnce(t *testing.T) {
	for name, endedFirst := range map[string]bool{"finds the one that runs": false, "finds the oldest": true} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			b.KeepsEnded, b.EndedFirst = true, endedFirst
			inWorld(t, b, func(w *world) {
				w.start()
				var want []string
				for _, uid := range []types.UID{"a", "b", "c", "d"} {
					w.api.Create(bound("p", uid))
					w.pass(time.Minute)
					w.api.Delete("d", "p", 1)
					w.pass(time.Minute)
					want = append(want, "create d/p", "delete d/p")
				}
				wantCalls(t, b, want...)
			}, onNode)
		})
	}
}

// TestWhatTheBackendForgetsIsForgotten: a backend keeps ended pods for a while, and a name may be used for years.
func TestWhatTheBackendForgetsIsForgotten(t *testing.T) {
	b := memory.New()
	b.KeepsEnded = true
	inWorld(t, b, func(w *world) {
		w.start()
		for _, uid := range []types.UID{"a", "b", "c"} {
			w.api.Create(bound("p", uid))
			w.pass(time.Minute)
			if uid != "c" {
				w.api.Delete("d", "p", 0)
			}
		}
		if kept := w.ctl.states.get("d/p").others; len(kept) != 1 || kept[0].UID != "b" {
			t.Errorf("the pods %+v are remembered as those that the backend keeps, want b", kept)
		}
	}, onNode, func(c *PodControllerConfig) { c.Provider = forgets{c.Provider.(memory.Notifying), "a"} })
}

// forgets is a backend that has forgotten an ended pod.
type forgets struct {
	memory.Notifying
	uid types.UID
}

func (f forgets) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	pods, err := f.Notifying.GetPods(ctx)
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p.UID == f.uid && p.Status.Phase != corev1.PodRunning }), err
}

// TestOrphanBesideAnEndedPodStops checks a pod that ended before this process began: the backend never accepted it from this process.
func TestOrphanBesideAnEndedPodStops(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		ended := never(bound("p", "a"))
		ended.Status = corev1.PodStatus{Phase: corev1.PodFailed}
		w.api.Create(ended)
		w.start()
		w.pass(time.Minute)
		b.Extra(bound("p", "x"))
		w.pass(time.Minute)
		if ran := b.Instances("x"); len(ran) != 0 {
			t.Errorf("%v of pod x run at the backend after a minute, want none", ran)
		}
		wantCalls(t, b, "delete d/p")
	}, onNode)
}

// TestOlderPodStopsWhileListsFail checks a wanted pod whose name an older pod has: only GetPod shows the older pod, which must stop first.
func TestOlderPodStopsWhileListsFail(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "old"))
		w.pass(time.Minute)
		b.Inject(memory.Fault{Method: memory.List, Err: memory.ErrUnwell, Times: 1000})
		w.api.Delete("d", "p", 0)
		w.api.Create(bound("p", "new"))
		w.pass(time.Minute)
		wantCalls(t, b, "create d/p", "delete d/p", "create d/p")
		w.wantPhase("p", corev1.PodRunning)
	}, onNode)
}

// TestEachSecondInstanceIsTold checks that a second instance is reported again after a list with only one instance.
func TestEachSecondInstanceIsTold(t *testing.T) {
	b, log, second := memory.New(), &eventLog{}, &atomic.Bool{}
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Minute)
		for want := 1; want <= 2; want++ {
			second.Store(true)
			w.pass(time.Minute)
			if told := log.of(eventSecondPod); len(told) != want {
				t.Errorf("%d events, want %d: %v", len(told), want, told)
			}
			second.Store(false)
			w.pass(time.Minute)
		}
	}, onNode, log.use, func(c *PodControllerConfig) { c.Provider = listsSecond{c.Provider.(memory.Notifying), second} })
}

// listsSecond lists a second instance of each pod while second is true.
type listsSecond struct {
	memory.Notifying
	second *atomic.Bool
}

func (l listsSecond) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	pods, err := l.Notifying.GetPods(ctx)
	if !l.second.Load() {
		return pods, err
	}
	for _, pod := range pods {
		other := pod.DeepCopy()
		for i := range other.Status.ContainerStatuses {
			other.Status.ContainerStatuses[i].ContainerID += "-second"
		}
		pods = append(pods, other)
	}
	return pods, err
}
