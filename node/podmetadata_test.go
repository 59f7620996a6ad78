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

// TestProvidersWritesEndInAnyOrder: a provider writes an annotation in every UpdatePod; its report, the write to the API server, the watch
// event and the response overtake each other.
func TestProvidersWritesEndInAnyOrder(t *testing.T) {
	const own = "provider.example/revision"
	for _, tt := range []struct {
		name                           string
		before, after, update, reports time.Duration
		lost                           int // number of lost responses to writes
	}{
		{name: "the watch is before the answer", after: 2 * time.Second},
		{name: "the watch is before the answer, the report before the end of the call", after: 2 * time.Second, update: time.Second},
		{name: "writes are slow", before: 2 * time.Second},
		{name: "writes are slow, and so are updates", before: 2 * time.Second, update: 3 * time.Second},
		{name: "updates are slow", update: 5 * time.Second},
		{name: "a second report while the first is written", before: time.Second, after: time.Second, reports: 1500 * time.Millisecond},
		{name: "a second report long after the first", after: time.Second, reports: 5 * time.Second},
		{name: "answers are lost", lost: 2, reports: time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := memory.New()
			s := &scribe{}
			s.write = func(p *corev1.Pod, n int) {
				setAnnotation(p, own, fmt.Sprint("wrote ", n))
				if tt.reports > 0 {
					time.AfterFunc(tt.reports, func() {
						b.Change("d/p", func(p *corev1.Pod) { setAnnotation(p, own, fmt.Sprint("wrote again ", n)) })
					})
				}
			}
			inWorld(t, b, func(w *world) {
				w.but = []string{"S6"} // as in TestFault56ProvidersOwnWritesAreNoNews
				w.start()
				p := bound("p", "a")
				p.Labels = map[string]string{"user": "0"}
				w.api.Create(p)
				w.pass(time.Minute)
				b.Script(func(_ context.Context, method, _ string) error {
					if method == "update" {
						<-time.After(tt.update)
					}
					return nil
				})
				w.api.Fault = slowPatches(tt.before)
				w.api.Lost = losePatches(tt.lost, tt.after)
				for i, change := range []func(p *corev1.Pod){
					func(p *corev1.Pod) { p.Labels = map[string]string{"user": "1"} },
					func(p *corev1.Pod) { p.Labels = map[string]string{"user": "2"} },
					func(p *corev1.Pod) { setAnnotation(p, own, "a user's") },
					func(p *corev1.Pod) { delete(p.Annotations, own) },
				} {
					seen := len(s.updates(0))
					var want *corev1.Pod // the user's version: the provider's write may follow at once
					w.api.Change("d", "p", func(p *corev1.Pod) {
						change(p)
						want = p.DeepCopy()
					})
					w.pass(10 * time.Minute)
					updates := s.updates(seen)
					if len(updates) == 0 || len(updates) > 3 {
						t.Fatalf("change %d: %d UpdatePods, want 1, and at most 3", i, len(updates))
					}
					if given := updates[0]; given.labels["user"] != want.Labels["user"] || given.annotations[own] != want.Annotations[own] {
						t.Errorf("change %d: the provider was given %v, want %v %v", i, given, want.Labels, want.Annotations)
					}
					if got, want := w.api.Pod("d", "p").Annotations[own], b.Has("d/p").Annotations[own]; got != want {
						t.Errorf("change %d: the API server has %q, the provider %q", i, got, want)
					}
				}
			}, func(cfg *PodControllerConfig) { s.Notifying = cfg.Provider.(memory.Notifying); cfg.Provider = s })
		})
	}
}

// slowPatches delays the effect of every patch.
func slowPatches(delay time.Duration) func(verb, namespace, name string) error {
	return func(verb, _, _ string) error {
		if verb == "patch" && delay > 0 {
			<-time.After(delay)
		}
		return nil
	}
}

// losePatches loses the responses to the first n patches, and delays the others.
func losePatches(n int, delay time.Duration) func(verb, namespace, name string) error {
	var answers atomic.Int32
	return func(verb, _, _ string) error {
		if verb != "patch" {
			return nil
		}
		if delay > 0 {
			<-time.After(delay)
		}
		if answers.Add(1) <= int32(n) {
			return apierrors.NewServiceUnavailable("the answer is lost")
		}
		return nil
	}
}

// TestUpdateKeepsWhatTheProviderChanged: the provider's changes that could not be written yet are in the pod that it receives with a user's
// change.
func TestUpdateKeepsWhatTheProviderChanged(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.api.Fault = slowPatches(5 * time.Second)
		b.Change("d/p", func(p *corev1.Pod) { setAnnotation(p, "own", "1") })
		w.pass(time.Second)
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Labels = map[string]string{"user": "1"} })
		w.pass(time.Minute)
		api, backend := w.api.Pod("d", "p"), b.Has("d/p")
		if api.Annotations["own"] != "1" || backend.Annotations["own"] != "1" || backend.Labels["user"] != "1" {
			t.Errorf("the API server has %v, the provider %v %v, want what each side changed on both", api.Annotations, backend.Annotations, backend.Labels)
		}
		wantCalls(t, b, "create d/p", "update d/p")
	})
}

// TestCacheBehindTheWriteIsNoChange: the cache does not show the provider's written change yet.
func TestCacheBehindTheWriteIsNoChange(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(10 * time.Second)
		w.api.Lag(w.api.Revision(), false)
		b.Change("d/p", func(p *corev1.Pod) { setAnnotation(p, "own", "1") })
		w.pass(time.Second)
		w.ctl.syncLane.Add("d/p")
		w.pass(10 * time.Second)
		w.api.CatchUp()
		w.pass(10 * time.Minute)
		wantCalls(t, b, "create d/p")
		if got := w.api.Pod("d", "p").Annotations["own"]; got != "1" {
			t.Errorf("annotation is %q in the API server, want the provider's, 1", got)
		}
	})
}

// TestProviderMayTakeItsWordBack: the provider may set an earlier value again.
func TestProviderMayTakeItsWordBack(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		p := bound("p", "a")
		p.Annotations = map[string]string{"user": "0"}
		w.api.Create(p)
		w.pass(time.Second)
		for _, value := range []string{"on", "off", "on", "off"} {
			b.Change("d/p", func(p *corev1.Pod) { setAnnotation(p, "own", value) })
			w.pass(time.Minute)
			if got := w.api.Pod("d", "p").Annotations["own"]; got != value {
				t.Errorf("annotation is %q in the API server, want %q", got, value)
			}
		}
		b.Change("d/p", func(p *corev1.Pod) { delete(p.Annotations, "own") })
		w.pass(time.Minute)
		if got, has := w.api.Pod("d", "p").Annotations["own"]; has {
			t.Errorf("annotation is %q in the API server, want none: the provider dropped it", got)
		}
		wantCalls(t, b, "create d/p")
	})
}

// TestFailedUpdateIsTriedAgain holds this regardless of reports, because the provider may have stored the pod before it failed.
func TestFailedUpdateIsTriedAgain(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		b.Inject(memory.Fault{Method: memory.Update, Times: 1, LoseAnswer: true})
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Labels = map[string]string{"user": "1"} })
		w.pass(100 * time.Millisecond)
		b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = "has the label already" })
		w.pass(time.Minute)
		wantCalls(t, b, "create d/p", "update d/p", "update d/p")
	})
}

// TestUsersMayWriteWhatTheProviderWrote holds this also for an earlier value, and if the provider's write had no response.
func TestUsersMayWriteWhatTheProviderWrote(t *testing.T) {
	for name, lost := range map[string]int{"answered": 0, "not answered": 1} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			inWorld(t, b, func(w *world) {
				w.start()
				w.api.Create(bound("p", "a"))
				w.pass(time.Second)
				w.api.Lost = losePatches(lost, 0)
				b.Change("d/p", func(p *corev1.Pod) { setAnnotation(p, "own", "1") })
				w.pass(time.Minute)
				for i, value := range []string{"a user's", "1"} {
					w.api.Change("d", "p", func(p *corev1.Pod) { setAnnotation(p, "own", value) })
					w.pass(time.Minute)
					if api, backend := w.api.Pod("d", "p").Annotations["own"], b.Has("d/p").Annotations["own"]; api != value || backend != value {
						t.Errorf("annotation is %q in the API server and %q at the backend, want what the user wrote, %q", api, backend, value)
					}
					if got := b.Count("update d/p"); got != i+1 {
						t.Errorf("%d UpdatePods, want %d", got, i+1)
					}
				}
			})
		})
	}
}

// TestUpdateFromACacheThatIsBehind: the provider receives the newest pod from the API server, not the older pod in the cache.
func TestUpdateFromACacheThatIsBehind(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		b.Inject(memory.Fault{Method: memory.Update, Times: 1, Err: memory.ErrUnwell})
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Labels = map[string]string{"user": "1"} })
		w.pass(100 * time.Millisecond)
		w.api.Lag(w.api.Revision(), false)
		b.Change("d/p", func(p *corev1.Pod) { setAnnotation(p, "own", "1") })
		w.pass(30 * time.Second)
		w.api.CatchUp()
		w.pass(time.Minute)
		if got := b.Has("d/p").Annotations["own"]; got != "1" || b.Has("d/p").Labels["user"] != "1" {
			t.Errorf("the backend has %q and %v, want what it wrote itself, 1, and the user's label", got, b.Has("d/p").Labels)
		}
		wantCalls(t, b, "create d/p", "update d/p", "update d/p")
	})
}
