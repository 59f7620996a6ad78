// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestChangeIsObservedWhateverTheProviderTells: most providers do not report a completed change, and some do not answer.
func TestChangeIsObservedWhateverTheProviderTells(t *testing.T) {
	other := func(context.Context, string, string) (*corev1.PodStatus, error) {
		return &corev1.PodStatus{Phase: corev1.PodPending, Message: "lags behind"}, nil
	}
	none := func(context.Context, string, string) (*corev1.PodStatus, error) { return nil, nil }
	empty := func(context.Context, string, string) (*corev1.PodStatus, error) { return &corev1.PodStatus{}, nil }
	for name, tc := range map[string]struct {
		fault  memory.Fault
		answer func(ctx context.Context, namespace, name string) (*corev1.PodStatus, error)
		within time.Duration
		asked  int
	}{
		"what was reported":     {fault: memory.Fault{Times: -1}, within: time.Second, asked: 1},
		"not what was reported": {fault: memory.Fault{Times: -1}, answer: other, within: 15 * time.Second, asked: 10},
		"nothing":               {fault: memory.Fault{Times: -1}, answer: none, within: time.Second, asked: 1},
		"an empty status":       {fault: memory.Fault{Times: -1}, answer: empty, within: time.Second, asked: 1},
		"an error":              {fault: memory.Fault{Method: memory.Status, Err: errors.New("not implemented")}, within: time.Second, asked: 1},
		"not found":             {fault: memory.Fault{Method: memory.Status, Err: errdefs.NotFound("no such pod")}, within: time.Second, asked: 1},
		"a panic":               {fault: memory.Fault{Method: memory.Status, Panic: "not implemented"}, within: time.Second, asked: 1},
		"no answer":             {fault: memory.Fault{Method: memory.Status, Hang: true}, within: readTimeout + time.Second, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			asked := 0
			inWorld(t, b, func(w *world) {
				w.start()
				w.api.Create(asking("p", "100m"))
				w.pass(time.Minute)
				if asked > 0 {
					t.Errorf("the provider was asked for the status %d times before anything was changed", asked)
				}
				b.Inject(tc.fault)
				before := len(w.api.Writes("d/p"))
				w.api.Change("d", "p", resizeTo("200m"))
				w.pass(tc.within)
				if p := w.api.Pod("d", "p"); p.Status.ObservedGeneration != p.Generation || p.Status.Phase != corev1.PodRunning {
					t.Errorf("generation %d, observed %d after %v, phase %s", p.Generation, p.Status.ObservedGeneration, tc.within, p.Status.Phase)
				}
				w.api.Change("d", "p", func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} })
				w.pass(10 * time.Minute)
				if writes := len(w.api.Writes("d/p")) - before; writes != 1 || asked == 0 || asked > tc.asked {
					t.Errorf("%d writes, and the provider was asked for the status %d times, want 1 and at most %d", writes, asked, tc.asked)
				}
			}, func(cfg *PodControllerConfig) {
				cfg.Provider = answers{cfg.Provider.(memory.Notifying), &asked, tc.answer}
			})
		})
	}
}

// answers counts its GetPodStatus calls, and may return another status than it reports.
type answers struct {
	memory.Notifying
	asked  *int
	status func(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) // nil: the status of the backend
}

func (p answers) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	*p.asked++
	if p.status != nil {
		return p.status(ctx, namespace, name)
	}
	return p.Notifying.GetPodStatus(ctx, namespace, name)
}

// TestReportOfTheNewGenerationNeedsNoQuestion: a backend may report a change before UpdatePod returns.
func TestReportOfTheNewGenerationNeedsNoQuestion(t *testing.T) {
	b := memory.New()
	asked := 0
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(asking("p", "100m"))
		w.pass(time.Minute)
		w.api.Change("d", "p", resizeTo("200m"))
		w.pass(time.Minute)
		if p := w.api.Pod("d", "p"); p.Status.ObservedGeneration != p.Generation || p.Status.Message != "changed" || asked > 0 {
			t.Errorf("generation %d, observed %d, message %q, asked for the status %d times", p.Generation, p.Status.ObservedGeneration, p.Status.Message, asked)
		}
	}, func(cfg *PodControllerConfig) {
		cfg.Provider = tellsAtOnce{answers{cfg.Provider.(memory.Notifying), &asked, nil}}
	})
}

type tellsAtOnce struct{ answers }

func (p tellsAtOnce) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	err := p.Notifying.UpdatePod(ctx, pod)
	p.Change(memory.Key(pod), func(p *corev1.Pod) { p.Status.Message = "changed" })
	return err
}

// TestChangeIsObservedAfterARestart: the daemon ended between UpdatePod and the response.
func TestChangeIsObservedAfterARestart(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(asking("p", "100m"))
		w.pass(time.Minute)
		b.Inject(memory.Fault{Method: memory.Status, Hang: true})
		w.api.Change("d", "p", resizeTo("200m"))
		w.pass(time.Second)
		if p := w.api.Pod("d", "p"); p.Status.ObservedGeneration == p.Generation {
			t.Fatal("the generation is observed before the provider has told anything")
		}
		w.halt()
		b.Heal()
		w.start()
		w.pass(time.Second)
		if p := w.api.Pod("d", "p"); p.Status.ObservedGeneration != p.Generation {
			t.Errorf("generation %d, observed %d", p.Generation, p.Status.ObservedGeneration)
		}
	})
}

// TestChangeOfAPodThatSharesItsNameIsObserved: the backend may return another pod of the name, so it is not asked.
func TestChangeOfAPodThatSharesItsNameIsObserved(t *testing.T) {
	b := memory.New()
	b.KeepsEnded = true
	b.Lossy = func(p *corev1.Pod) { p.Generation = 0 }
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "old"))
		w.pass(time.Minute)
		w.api.Delete("d", "p", 30)
		w.pass(time.Minute)
		w.api.Create(bound("p", "new"))
		w.pass(time.Minute)
		if st := w.ctl.states.get("d/p"); !st.sharesName() {
			t.Error("the backend is not known to have another pod of the name")
		}
		w.api.Change("d", "p", resizeTo("200m"))
		w.pass(time.Second)
		if p := w.api.Pod("d", "p"); p.Status.ObservedGeneration != p.Generation {
			t.Errorf("generation %d, observed %d", p.Generation, p.Status.ObservedGeneration)
		}
	})
}

// TestReportOvertakesTheFirstAnswer: the pod was changed while no daemon ran, and is reported during the first request for its status. The
// report has no generation.
func TestReportOvertakesTheFirstAnswer(t *testing.T) {
	b := memory.New()
	b.Lossy = func(p *corev1.Pod) { p.Generation = 0 }
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Minute)
		w.halt()
		w.api.Change("d", "p", resizeTo("200m"))
		b.Inject(memory.Fault{Method: memory.Status, Delay: time.Second, Times: 1})
		w.start()
		w.pass(time.Second / 2)
		b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = "news" })
		w.pass(2 * time.Second)
		if p := w.api.Pod("d", "p"); p.Status.ObservedGeneration != p.Generation || p.Status.Message != "news" {
			t.Errorf("generation %d, observed %d, message %q", p.Generation, p.Status.ObservedGeneration, p.Status.Message)
		}
	})
}

// TestServerWithoutObservedGenerationIsNotWrittenToAgain: an API server with the feature gate off counts generations, but does not store
// observed generations.
func TestServerWithoutObservedGenerationIsNotWrittenToAgain(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.configs = append(w.configs, func(cfg *PodControllerConfig) { cfg.PodClient = withoutObservedGeneration{w.api} })
		w.but = []string{"S6"}
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Minute)
		w.wantPhase("p", corev1.PodRunning)
		before := len(w.api.Writes("d/p"))
		w.pass(time.Hour)
		if n := len(w.api.Writes("d/p")) - before; n > 0 {
			t.Errorf("%d writes of a pod at rest in an hour", n)
		}
	})
}

// withoutObservedGeneration is an API server that drops the field before it stores a status.
type withoutObservedGeneration struct{ corev1client.PodsGetter }

func (d withoutObservedGeneration) Pods(namespace string) corev1client.PodInterface {
	return podsWithoutObservedGeneration{d.PodsGetter.Pods(namespace)}
}

type podsWithoutObservedGeneration struct{ corev1client.PodInterface }

func (p podsWithoutObservedGeneration) Patch(ctx context.Context, name string, kind types.PatchType, body []byte, opts metav1.PatchOptions, sub ...string) (*corev1.Pod, error) {
	var patch map[string]any
	if err := json.Unmarshal(body, &patch); err != nil {
		return nil, err
	}
	if status, ok := patch["status"].(map[string]any); ok {
		delete(status, "observedGeneration")
		conditions, _ := status["conditions"].([]any)
		for _, c := range conditions {
			delete(c.(map[string]any), "observedGeneration")
		}
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return p.PodInterface.Patch(ctx, name, kind, body, opts, sub...)
}
