// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestChangedWhileDownStillTellsItsStatus holds that the backend receives the change, and that a status from before is not lost.
func TestChangedWhileDownStillTellsItsStatus(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.halt()
		b.Mute()
		b.Change("d/p", func(p *corev1.Pod) { *p = *memory.Ended(p, 3) })
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "j" })
		w.start()
		w.pass(time.Minute)
		w.wantPhase("p", corev1.PodFailed)
	})
}

func TestStatusIsAskedForUntilItIsKnown(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.halt()
		b.Mute()
		b.Change("d/p", func(p *corev1.Pod) { *p = *memory.Ended(p, 3) })
		b.Script(memory.FailFirst("status", 2))
		w.start()
		w.pass(time.Minute)
		w.wantPhase("p", corev1.PodFailed)
	})
}

// TestNewsOvertakeAPoll holds that a report takes precedence over the answer to a poll that began earlier.
func TestNewsOvertakeAPoll(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.halt()
		w.configs = append(w.configs, func(cfg *PodControllerConfig) {
			cfg.Provider = slowStatus{memory.Notifying{Backend: b}}
		})
		w.start()
		w.pass(time.Second)
		b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = "newest" })
		w.pass(time.Minute)
		if got := w.api.Pod("d", "p").Status.Message; got != "newest" {
			t.Errorf("message is %q, want the newest", got)
		}
	})
}

// slowStatus reads the status at once and returns it after five seconds.
type slowStatus struct{ memory.Notifying }

func (s slowStatus) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	status, err := s.Notifying.GetPodStatus(ctx, namespace, name)
	status = status.DeepCopy()
	<-time.After(5 * time.Second)
	return status, err
}

// TestDeletedWhileDownIsStoppedFirst: an earlier process ran the pod, so its absence
// alone does not confirm that it has stopped.
func TestDeletedWhileDownIsStoppedFirst(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.halt()
		w.api.Delete("d", "p", 30)
		b.Script(func(_ context.Context, method, _ string) error {
			if method == "get" {
				return errors.New("no such pod") // without a kind: the list decides
			}
			return nil
		})
		w.configs = append(w.configs, func(cfg *PodControllerConfig) {
			cfg.Provider = emptyLists{cfg.Provider.(memory.Notifying)}
		})
		w.start()
		w.pass(time.Minute)
		wantCalls(t, b, "create d/p", "delete d/p")
		w.wantPhase("p", "")
	})
}

type emptyLists struct{ memory.Notifying }

func (emptyLists) GetPods(context.Context) ([]*corev1.Pod, error) { return nil, nil }

// TestOldListSaysNothingOfANewPod: a backend without UIDs listed the old pod before the new pod of the same name was created.
func TestOldListSaysNothingOfANewPod(t *testing.T) {
	b := memory.New()
	b.KeepsNoUID = true
	inWorld(t, b, func(w *world) {
		lists := &slowLists{Backend: b}
		w.configs = append(w.configs, func(cfg *PodControllerConfig) { cfg.Provider = lists })
		w.start()
		w.api.Create(bound("p", "old"))
		w.pass(10 * time.Second)
		b.Change("d/p", func(p *corev1.Pod) { *p = *memory.Ended(p, 1) })
		lists.slow.Store(true)
		w.pass(6 * time.Second) // a list with the old pod is being returned
		w.api.Delete("d", "p", 0)
		w.api.Create(bound("p", "new"))
		w.pass(time.Minute)
		w.wantPhase("p", corev1.PodRunning)
	})
}

// slowLists reads the list at once and returns it after ten seconds.
type slowLists struct {
	*memory.Backend
	slow atomic.Bool
}

func (s *slowLists) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	pods, err := s.Backend.GetPods(ctx)
	if s.slow.Load() {
		<-time.After(10 * time.Second)
	}
	return pods, err
}

func TestRestartChangesNothing(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		for i := range 20 {
			w.api.Create(bound(fmt.Sprint("p", i), ""))
		}
		w.pass(time.Second)
		calls := len(b.Calls())
		writes := len(w.api.Writes(""))
		w.halt()
		w.start()
		w.pass(10 * time.Minute)
		if len(b.Calls()) != calls || len(w.api.Writes("")) != writes {
			t.Errorf("after a restart: calls %q, writes %v", b.Calls()[calls:], w.api.Writes("")[writes:])
		}
	})
}

func TestWhatHappenedWhileTheDaemonWasDown(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		for _, name := range []string{"deleted", "forced", "ended", "replaced", "changed"} {
			w.api.Create(bound(name, ""))
		}
		w.pass(time.Second)
		w.halt()
		w.api.Delete("d", "deleted", 30)
		w.api.Delete("d", "forced", 0)
		b.Mute()
		b.Change("d/ended", func(p *corev1.Pod) { *p = *memory.Ended(p, 3) })
		w.api.Delete("d", "replaced", 0)
		w.api.Create(bound("replaced", "new"))
		w.api.Change("d", "changed", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "j" })
		w.start()
		w.pass(time.Minute)
		w.wantPhase("deleted", "")
		w.wantPhase("ended", corev1.PodFailed)
		w.wantPhase("replaced", corev1.PodRunning)
		if b.Has("d/deleted") != nil || b.Has("d/forced") != nil {
			t.Error("a deleted pod is left at the backend")
		}
		if got := b.Has("d/replaced"); got == nil || got.UID != "new" {
			t.Errorf("the backend's pod is %v, want the new one", got)
		}
		if got := b.Has("d/changed").Spec.Containers[0].Image; got != "j" {
			t.Errorf("image at the backend is %s, want j", got)
		}
	})
}
