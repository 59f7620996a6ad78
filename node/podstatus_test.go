// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

func TestLifeOfAPodTakesThreeWrites(t *testing.T) {
	inWorld(t, memory.New(), func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.wantPhase("p", corev1.PodRunning)
		w.api.Delete("d", "p", -1)
		w.pass(time.Minute)
		w.wantPhase("p", "")
		w.wantWrites("d/p", "patch", "patch", "delete")
		wantCalls(t, w.backend, "create d/p", "delete d/p")
		if n := w.ctl.states.size(); n != 0 {
			t.Errorf("%d states are left", n)
		}
		if n := w.ctl.SyncPodsFromKubernetesQueueLen() + w.ctl.DeletePodsFromKubernetesQueueLen() + w.ctl.SyncPodStatusFromProviderQueueLen(); n != 0 {
			t.Errorf("%d keys are left in the queues", n)
		}
	})
}

func TestReadinessGateOfAnotherWriterIsKept(t *testing.T) {
	inWorld(t, memory.New(), func(w *world) {
		w.start()
		p := bound("p", "a")
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
		w.api.Create(p)
		w.pass(time.Second)
		w.wantReady("p", corev1.ConditionFalse)
		w.api.Change("d", "p", func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "gate", Status: corev1.ConditionTrue})
		})
		w.pass(time.Second)
		w.wantReady("p", corev1.ConditionTrue)
	})
}

func (w *world) wantReady(name string, want corev1.ConditionStatus) {
	w.Helper()
	for _, c := range w.api.Pod("d", name).Status.Conditions {
		if c.Type == corev1.PodReady {
			if c.Status != want {
				w.Errorf("Ready of %s is %+v, want %s", name, c, want)
			}
			return
		}
	}
	w.Errorf("%s has no condition Ready", name)
}

func TestStatusBackAndForthEndsWithTheLast(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(10 * time.Second)
		b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = "B" })
		b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = "" })
		w.pass(10 * time.Second)
		if got := w.api.Pod("d", "p").Status.Message; got != "" {
			t.Errorf("message is %q, want none", got)
		}
		before := len(w.api.Writes("d/p"))
		for i := range 2000 {
			b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = fmt.Sprint(i) })
			w.pass(5 * time.Millisecond)
		}
		w.pass(5 * time.Second)
		if got := w.api.Pod("d", "p").Status.Message; got != "1999" {
			t.Errorf("message is %q, want the last", got)
		}
		if n := len(w.api.Writes("d/p")) - before; n > 20 {
			t.Errorf("%d writes in 10 s of flapping, want about one a second", n)
		}
	})
}

func TestStatusWriteIsRetried(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		var refuse atomic.Bool
		refuse.Store(true)
		w.api.Fault = func(verb, _, _ string) error {
			if verb == "patch" && refuse.Load() {
				return apierrors.NewTooManyRequests("slow down", 1)
			}
			return nil
		}
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Hour)
		w.wantPhase("p", corev1.PodPending)
		refuse.Store(false)
		w.pass(time.Minute + 10*time.Second)
		w.wantPhase("p", corev1.PodRunning)
	})
}

// TestForbiddenLabelIsSentRarely: a refused label is not sent again for a while, even with other writes.
func TestForbiddenLabelIsSentRarely(t *testing.T) {
	b := memory.New()
	var sent atomic.Int32
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.api.Fault = func(verb, _, _ string) error {
			if writes := w.api.Writes("d/p"); verb == "patch" && strings.Contains(writes[len(writes)-1].Body, `"labels"`) {
				sent.Add(1)
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("labels"))
			}
			return nil
		}
		b.Change("d/p", func(p *corev1.Pod) { p.Labels = map[string]string{"backend": "x"} })
		w.pass(time.Second)
		for i := range 10 {
			b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = fmt.Sprint(i) })
			w.pass(20 * time.Second)
			if got := w.api.Pod("d", "p").Status.Message; got != fmt.Sprint(i) {
				t.Errorf("the status has the message %q, want %d", got, i)
			}
		}
		if n := sent.Load(); n != 1 {
			t.Errorf("the refused label was sent %d times in 200 s, want once", n)
		}
		b.Change("d/p", func(p *corev1.Pod) { p.Labels = map[string]string{"backend": "y"} })
		w.pass(time.Second)
		if n := sent.Load(); n != 2 {
			t.Errorf("another label was sent %d times, want once", n-1)
		}
		w.pass(labelsAgain)
		b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = "later" })
		w.pass(time.Second)
		if n := sent.Load(); n != 3 {
			t.Errorf("after %v the label was sent %d times, want once", labelsAgain, n-2)
		}
	})
}

func TestForbiddenLabelDoesNotHoldUpTheStatus(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.api.Fault = func(verb, _, _ string) error {
			if writes := w.api.Writes("d/p"); verb == "patch" && strings.Contains(writes[len(writes)-1].Body, `"labels"`) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("labels"))
			}
			return nil
		}
		b.Change("d/p", func(p *corev1.Pod) {
			p.Labels = map[string]string{"backend": "1"}
			p.Status.Message = "hello"
		})
		w.pass(time.Second)
		if got := w.api.Pod("d", "p"); got.Status.Message != "hello" || len(got.Labels) != 0 {
			t.Errorf("message %q, labels %v; want the message without the label", got.Status.Message, got.Labels)
		}
	})
}

func TestUpdateReachesTheBackendAndIsObserved(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		for range 50 {
			w.api.Change("d", "p", func(p *corev1.Pod) { p.Spec.Containers[0].Image += "x" })
		}
		w.pass(time.Minute)
		p := w.api.Pod("d", "p")
		if p.Status.ObservedGeneration != p.Generation || b.Has("d/p").Spec.Containers[0].Image != p.Spec.Containers[0].Image {
			t.Errorf("generation %d, observed %d", p.Generation, p.Status.ObservedGeneration)
		}
	})
}

func TestFinalizerHoldsTheObjectWithoutAStorm(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		p := bound("p", "a")
		p.Finalizers = []string{"some/body"}
		w.api.Create(p)
		w.pass(time.Second)
		w.api.Delete("d", "p", 5)
		w.pass(time.Minute)
		if b.Has("d/p") != nil {
			t.Error("the backend still has the pod")
		}
		w.wantPhase("p", corev1.PodSucceeded)
		before := len(w.api.Writes(""))
		w.pass(10 * time.Minute)
		if n := len(w.api.Writes("")) - before; n > 0 {
			t.Errorf("%d writes while the finalizer holds the object", n)
		}
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Finalizers = nil })
		w.pass(time.Second)
		w.wantPhase("p", "")
	})
}
