// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// The nine guarantees of doc.go, each by its name.

func TestOneCallPerPod(t *testing.T) {
	b := memory.New()
	b.Fault = func(ctx context.Context, method, _ string) error {
		if method == "create" || method == "update" || method == "delete" {
			time.Sleep(3 * time.Second)
		}
		return nil
	}
	inWorld(t, b, func(w *world) { // the harness detects overlaps
		w.start()
		for i := range 10 {
			w.api.Create(bound(fmt.Sprint("p", i), ""))
		}
		for range 5 {
			w.pass(time.Second)
			for i := range 10 {
				w.api.Change("d", fmt.Sprint("p", i), func(p *corev1.Pod) { p.Spec.Containers[0].Image += "x" })
			}
		}
		for i := range 10 {
			w.api.Delete("d", fmt.Sprint("p", i), 1)
		}
		w.pass(time.Minute)
		if n := w.api.Len(); n != 0 {
			t.Errorf("%d pods are left", n)
		}
	})
}

func TestOneWriter(t *testing.T) {
	inWorld(t, memory.New(), func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.api.Change("d", "p", func(p *corev1.Pod) {
			p.Labels = map[string]string{"user": "1"}
			p.Annotations = map[string]string{"user": "1"}
			p.Finalizers = []string{"some/body"}
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "theirs", Status: corev1.ConditionTrue})
		})
		w.backend.Change("d/p", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"backend": "arn:1"}
			p.Status.Message = "hello"
		})
		w.pass(time.Minute)
		p := w.api.Pod("d", "p")
		if p.Labels["user"] != "1" || p.Annotations["user"] != "1" || p.Annotations["backend"] != "arn:1" || len(p.Finalizers) != 1 || p.Status.Message != "hello" {
			t.Errorf("labels %v, annotations %v, finalizers %v, message %q", p.Labels, p.Annotations, p.Finalizers, p.Status.Message)
		}
		if !hasCondition(p, "theirs") {
			t.Errorf("a foreign condition is lost: %v", p.Status.Conditions)
		}
		for _, write := range w.api.Writes("") {
			if write.Verb == "patch" && (strings.Contains(write.Body, `"spec"`) || !strings.Contains(write.Body, `"uid":"a"`)) {
				t.Errorf("patch has a spec or no UID: %s", write.Body)
			}
		}
	})
}

func hasCondition(p *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return true
		}
	}
	return false
}

func TestStateNotEvents(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("kept", "a"))
		w.api.Create(bound("lost", "b"))
		w.pass(time.Second)
		// One pod is deleted and another is created in a gap of the watch: the controller sees only a tombstone and a list.
		w.api.Vanish("d", "lost")
		w.api.Compact()
		w.api.Create(bound("new", "c"))
		w.pass(10 * time.Second)
		if b.Has("d/lost") != nil || b.Has("d/new") == nil || b.Has("d/kept") == nil {
			t.Errorf("backend has lost %v, new %v, kept %v", b.Has("d/lost") != nil, b.Has("d/new") != nil, b.Has("d/kept") != nil)
		}
		for _, call := range []string{"create d/kept", "create d/lost", "create d/new", "delete d/lost"} {
			if b.Count(call) != 1 {
				t.Errorf("%d calls of %s, want 1", b.Count(call), call)
			}
		}
		w.pass(time.Hour) // sixty resyncs
		if n := len(b.Calls()); n != 4 {
			t.Errorf("%d calls after an hour of resyncs, want 4: %q", n, b.Calls())
		}
	})
}

func TestSameNameIsAnotherPod(t *testing.T) {
	for _, noUID := range []bool{false, true} {
		t.Run(fmt.Sprintf("keepsNoUID=%v", noUID), func(t *testing.T) {
			b := memory.New()
			b.StopTime, b.KeepsNoUID = 5*time.Second, noUID
			inWorld(t, b, func(w *world) {
				w.start()
				w.api.Create(bound("p", "old"))
				w.pass(time.Second)
				old := b.Has("d/p")
				old.UID = "old"
				w.api.Delete("d", "p", 0) // force-deleted: gone at once
				w.api.Create(bound("p", "new"))
				w.pass(4 * time.Second)
				if b.Count("create d/p") != 1 {
					t.Errorf("the new pod was created before the old one had stopped: %q", b.Calls())
				}
				w.pass(10 * time.Second)
				wantCalls(t, b, "create d/p", "delete d/p", "create d/p")
				b.Tell(memory.Ended(old, 1)) // a late report about the old pod
				w.pass(time.Second)
				w.wantPhase("p", corev1.PodRunning)
				if got := w.api.Pod("d", "p").UID; got != "new" {
					t.Errorf("the pod in the API server is %s", got)
				}
			})
		})
	}
}

func TestTerminalIsFinal(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		p := bound("p", "a")
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		w.api.Create(p)
		w.pass(time.Second)
		b.Change("d/p", func(p *corev1.Pod) { *p = *memory.Ended(p, 1) })
		w.pass(time.Second)
		w.wantPhase("p", corev1.PodFailed)
		b.Change("d/p", func(p *corev1.Pod) { *p = *memory.Ended(p, 42) })
		w.pass(time.Second)
		late := b.Has("d/p")
		late.Status.Phase = corev1.PodRunning
		late.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		b.Tell(late) // out of order
		w.pass(time.Minute)
		w.wantPhase("p", corev1.PodFailed)
		if code := w.api.Pod("d", "p").Status.ContainerStatuses[0].State.Terminated.ExitCode; code != 42 {
			t.Errorf("exit code is %d, want the late one, 42", code)
		}
		wantCalls(t, b, "create d/p")
	})
}

func TestRemoveOnlyWhenStopped(t *testing.T) {
	b := memory.New()
	b.StopTime = time.Minute // longer than the grace period
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.api.Delete("d", "p", 10)
		w.pass(55 * time.Second)
		if w.api.Pod("d", "p") == nil {
			t.Fatal("the API object is gone while the backend still runs the pod")
		}
		w.pass(10 * time.Second)
		if w.api.Pod("d", "p") != nil {
			t.Error("the API object is still there although the backend has confirmed the stop")
		}
		w.wantWrites("d/p", "patch", "patch", "delete")
		if last := w.api.Writes("d/p")[2]; last.UID != "a" {
			t.Errorf("removed with the precondition %q, want UID a", last.UID)
		}
	})
}

func TestNeverGiveUp(t *testing.T) {
	b := memory.New()
	b.Fault = memory.FailFirst("create", 30)
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(5 * time.Minute)
		p := w.api.Pod("d", "p")
		if p.Status.Phase != corev1.PodPending || p.Status.Reason != "ProviderFailed" ||
			!strings.Contains(p.Status.Message, memory.ErrUnwell.Error()) || !strings.Contains(p.Status.Message, "tried again") {
			t.Errorf("status is %s %q %q, want the backend's error, and that it is tried again", p.Status.Phase, p.Status.Reason, p.Status.Message)
		}
		if e := w.events(); len(e) == 0 || !strings.Contains(e[0], "ProviderCreateFailed") || !strings.Contains(e[0], memory.ErrUnwell.Error()) {
			t.Errorf("events are %q, want ProviderCreateFailed with the backend's error", e)
		}
		w.pass(30 * time.Minute)
		w.wantPhase("p", corev1.PodRunning)
		if p := w.api.Pod("d", "p"); p.Status.Reason != "" || p.Status.Message != "" {
			t.Errorf("the sync error is over, but the status says %q %q", p.Status.Reason, p.Status.Message)
		}
		if n := b.Count("create d/p"); n != 31 {
			t.Errorf("%d creates, want 31", n)
		}
		for _, e := range w.events() {
			if strings.Contains(e, "given up") {
				t.Errorf("event %q", e)
			}
		}
	})
}

func TestNeverGiveUpRestartsAtOnceWhenHealthy(t *testing.T) {
	b := memory.New()
	b.Fault = memory.FailFirst("create", 10)
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(2*time.Minute + 20*time.Second) // 10 failures; the next try is almost a minute away
		before := b.Count("create d/p")
		w.ctl.Kick()
		w.pass(time.Millisecond)
		if n := b.Count("create d/p"); n != before+1 {
			t.Errorf("%d creates after the kick, want %d", n, before+1)
		}
	})
}

func TestNeverDestroyOnSilence(t *testing.T) {
	t.Run("an empty list destroys nothing", func(t *testing.T) {
		b := memory.New()
		inWorld(t, b, func(w *world) {
			w.start()
			w.api.Create(bound("p", "a"))
			w.pass(time.Hour)
			wantCalls(t, b, "create d/p")
			w.wantPhase("p", corev1.PodRunning)
		}, func(cfg *PodControllerConfig) { cfg.Provider = emptyLists{memory.Notifying{Backend: b}} })
	})
	t.Run("a backend that does not answer destroys nothing", func(t *testing.T) {
		b := memory.New()
		inWorld(t, b, func(w *world) {
			w.start()
			for i := range 20 {
				w.api.Create(bound(fmt.Sprint("p", i), ""))
			}
			w.pass(time.Second)
			b.Script(func(_ context.Context, method, _ string) error {
				if method == "list" || method == "get" {
					return memory.ErrUnwell
				}
				return nil
			})
			w.api.Change("d", "p0", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "j" }) // the node must ask for its status
			w.pass(10 * time.Minute)
			if calls := b.Calls(); len(calls) != 20 {
				t.Errorf("calls are %q, want 20 creates", calls)
			}
			if b.Len() != 20 {
				t.Errorf("%d pods are left, want 20", b.Len())
			}
		})
	})
	t.Run("an API server that has forgotten most pods is not believed", func(t *testing.T) {
		b := memory.New()
		inWorld(t, b, func(w *world) {
			w.start()
			w.loseMost(w.runTwenty())
			w.pass(4 * time.Minute)
			if b.Len() != 20 {
				t.Errorf("%d pods are left at the backend, want all 20 to be held", b.Len())
			}
		})
	})
	t.Run("a live read decides", func(t *testing.T) {
		b := memory.New()
		inWorld(t, b, func(w *world) {
			w.api.Create(bound("p", "a"))
			b.Run(bound("p", "a"))
			// The cache never sees the pod: the filter hides it, so its status is another's.
			w.but = []string{"S5"}
			w.start()
			w.pass(time.Hour)
			wantCalls(t, b)
		}, func(cfg *PodControllerConfig) {
			cfg.PodEventFilterFunc = func(context.Context, *corev1.Pod) bool { return false }
		})
	})
	t.Run("an orphan goes after its quarantine, for as long as the node runs", func(t *testing.T) {
		b := memory.New()
		inWorld(t, b, func(w *world) {
			w.start()
			w.pass(time.Hour)
			b.Mute() // no reports: the relist must find it
			b.Run(bound("orphan", "s"))
			w.pass(9 * time.Second)
			wantCalls(t, b)
			w.pass(time.Minute)
			wantCalls(t, b, "delete d/orphan")
		})
	})
	t.Run("a live read that fails is no evidence", func(t *testing.T) {
		b := memory.New()
		inWorld(t, b, func(w *world) {
			w.api.Fault = func(verb, _, _ string) error {
				if verb == "get" {
					return apierrors.NewServiceUnavailable("try later")
				}
				return nil
			}
			b.Run(bound("orphan", "s"))
			w.start()
			w.pass(10 * time.Minute)
			wantCalls(t, b)
		})
	})
}

func TestRunReturnsClean(t *testing.T) {
	b := memory.New()
	var returned atomic.Bool
	b.Fault = func(ctx context.Context, method, key string) error {
		if key == "d/hung" && method == "create" {
			<-ctx.Done()
			time.Sleep(3 * time.Second) // time for the provider to clean up
			returned.Store(true)
			return ctx.Err()
		}
		return nil
	}
	inWorld(t, b, func(w *world) { // a leaked goroutine would deadlock the bubble
		w.start()
		for i := range 50 {
			w.api.Create(bound(fmt.Sprint("p", i), ""))
		}
		w.api.Create(bound("hung", ""))
		w.pass(time.Second)
		before := time.Now()
		w.halt()
		if took := time.Since(before); !returned.Load() || took > 3*time.Second {
			t.Errorf("Run returned after %v, the hung call has returned: %v; want 3s and true", took, returned.Load())
		}
		select {
		case <-w.ctl.Done():
		default:
			t.Error("Run has returned, but Done is open")
		}
		if err := w.ctl.Err(); err != nil {
			t.Errorf("Err is %v, want nil", err)
		}
		if err := w.ctl.Run(t.Context(), 1); err == nil {
			t.Error("a second Run returned no error")
		}
	})
}

func TestRunNeedsWorkersAndCaches(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.halt()
		cfg := PodControllerConfig{}
		if _, err := NewPodController(cfg); err == nil || err.Error() != "missing core client" {
			t.Errorf("got %v, want missing core client", err)
		}
		if err := w.ctl.Run(t.Context(), 0); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want an error about the number of workers", err)
		}
	})
}
