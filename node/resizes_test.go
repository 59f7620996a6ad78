// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

const (
	resizeBegins = 300 * time.Millisecond
	resizeTakes  = 3 * time.Second
)

// resizing records a change of resources and returns. Its status shows the resize once it has begun, and GetPodStatus waits for that.
type resizing struct {
	memory.Notifying
	begun chan struct{} // closed when the resize has begun
	early func()        // called between the return of UpdatePod and the start of the resize
	late  time.Duration // delay of the report after the answer of GetPodStatus
}

func (r *resizing) UpdatePod(_ context.Context, pod *corev1.Pod) error {
	resize := func(progress func(*corev1.Pod)) { r.Change(memory.Key(pod), progress) }
	go func() {
		<-time.After(resizeBegins / 2)
		r.early()
		<-time.After(resizeBegins / 2)
		r.Reports(memory.Reports{Delay: r.late})
		_ = r.Notifying.UpdatePod(context.Background(), pod)
		resize(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue}}
		})
		close(r.begun)
		<-time.After(resizeTakes)
		resize(func(p *corev1.Pod) {
			p.Status.Conditions = nil
			p.Status.ContainerStatuses[0].Resources = p.Spec.Containers[0].Resources.DeepCopy()
		})
	}()
	return nil
}

func (r *resizing) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	select {
	case <-r.begun:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return r.Notifying.GetPodStatus(ctx, namespace, name)
}

func resizeTo(cpu string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

func resizeInProgress(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodResizeInProgress {
			return true
		}
	}
	return false
}

func resized(p *corev1.Pod) bool {
	has := p.Status.ContainerStatuses[0].Resources
	return has != nil && equality.Semantic.DeepEqual(*has, p.Spec.Containers[0].Resources)
}

// TestResizeIsNotObservedBeforeTheStatusTellsOfIt: a client that waits for the generation, and then for the end of the condition, must not
// consider the resize done before it has begun.
func TestResizeIsNotObservedBeforeTheStatusTellsOfIt(t *testing.T) {
	for name, tc := range map[string]struct {
		early   func(b *memory.Backend)
		late    time.Duration
		numbers func(*corev1.Pod) // changes the generation in the backend's reports
		silent  bool
	}{
		"nothing is told before":           {},
		"the report comes after an answer": {late: 500 * time.Millisecond},
		// It was being delivered when UpdatePod returned, and has a new status.
		"a report of before comes after": {early: func(b *memory.Backend) {
			b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = "before" })
		}, late: 500 * time.Millisecond},
		"no report has a generation":         {numbers: func(p *corev1.Pod) { p.Generation = 0 }, late: 500 * time.Millisecond},
		"the backend has another generation": {numbers: func(p *corev1.Pod) { p.Generation = 99 }},
		"the backend has none but the first": {numbers: func(p *corev1.Pod) { p.Generation = 1 }, late: 500 * time.Millisecond},
		"the provider does not report":       {silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			b.Lossy = tc.numbers
			inWorld(t, b, func(w *world) {
				w.start()
				w.api.Create(asking("p", "100m"))
				w.pass(time.Minute)
				if p := w.api.Pod("d", "p"); p.Status.ObservedGeneration != p.Generation {
					t.Errorf("generation %d of a new pod, observed %d", p.Generation, p.Status.ObservedGeneration)
				}
				w.api.Change("d", "p", resizeTo("200m"))
				for began := time.Now(); time.Since(began) < 10*time.Second; {
					w.pass(50 * time.Millisecond)
					p := w.api.Pod("d", "p")
					if p.Status.ObservedGeneration == p.Generation && !resized(p) && !resizeInProgress(p) {
						t.Errorf("%v after the change its generation is observed, and nothing tells of the resize", time.Since(began))
					}
				}
				if p := w.api.Pod("d", "p"); p.Status.ObservedGeneration != p.Generation || !resized(p) || resizeInProgress(p) {
					t.Errorf("generation %d after the resize: %+v", p.Generation, p.Status)
				}
			}, func(cfg *PodControllerConfig) {
				r := &resizing{Notifying: cfg.Provider.(memory.Notifying), begun: make(chan struct{}), late: tc.late, early: func() {
					if tc.early != nil {
						tc.early(b)
					}
				}}
				cfg.Provider = r
				if tc.silent {
					cfg.Provider = polled{r}
				}
			})
		})
	}
}

// polled is a provider without optional abilities.
type polled struct{ PodLifecycleHandler }
