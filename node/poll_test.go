// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

func TestProviderWithoutNotifierIsPolled(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.wantPhase("p", corev1.PodRunning)
		b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = "busy" })
		w.pass(6 * time.Second)
		if got := w.api.Pod("d", "p").Status.Message; got != "busy" {
			t.Errorf("message is %q, want busy", got)
		}
		w.api.Delete("d", "p", -1)
		w.pass(5 * time.Second)
		w.wantPhase("p", "")
		for _, write := range w.api.Writes("d/p") {
			if strings.Contains(write.Body, `"exitCode":0`) {
				t.Errorf("an exit code 0 is invented: %s", write.Body)
			}
		}
	}, silent)
}

func TestProviderWhoseListHasNoStatusIsPolledOneByOne(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		for i := range 30 {
			w.api.Create(bound(fmt.Sprint("p", i), ""))
		}
		w.pass(2 * time.Second)
		for i := range 30 {
			b.Change(fmt.Sprint("d/p", i), func(p *corev1.Pod) { p.Status.Message = "busy" })
		}
		w.pass(6 * time.Second)
		for i := range 30 {
			if got := w.api.Pod("d", fmt.Sprint("p", i)).Status.Message; got != "busy" {
				t.Errorf("message of p%d is %q, want busy", i, got)
			}
		}
	}, func(cfg *PodControllerConfig) { cfg.Provider = bareLists{b} })
}

// bareLists is a provider whose GetPods returns pods without a status.
type bareLists struct{ PodLifecycleHandler }

func (b bareLists) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	pods, err := b.PodLifecycleHandler.GetPods(ctx)
	for _, p := range pods {
		p.Status = corev1.PodStatus{}
	}
	return pods, err
}

// TestGetPodErrorWithoutAKind: many providers return a plain error for a pod
// that they do not have.
func TestGetPodErrorWithoutAKind(t *testing.T) {
	b := memory.New()
	b.Fault = func(_ context.Context, method, key string) error {
		if method == "get" && b.Has(key) == nil {
			return errors.New("unknown pod")
		}
		return nil
	}
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.wantPhase("p", corev1.PodRunning)
		w.api.Delete("d", "p", 5)
		w.pass(10 * time.Second)
		w.wantPhase("p", "")
	})
}

// asGiven is a backend that stores an updated pod as given, including its status, and has the real status only in GetPodStatus.
type asGiven struct {
	*memory.Backend
	mu    sync.Mutex
	given map[string]*corev1.Pod // guarded by mu
}

func (a *asGiven) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	a.mu.Lock()
	a.given[memory.Key(pod)] = pod
	a.mu.Unlock()
	return a.Backend.UpdatePod(ctx, pod.DeepCopy())
}

func (a *asGiven) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	pods, err := a.Backend.GetPods(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, p := range pods {
		if given := a.given[memory.Key(p)]; given != nil {
			pods[i] = given.DeepCopy()
		}
	}
	return pods, err
}

// TestUpdateCarriesTheProvidersOwnStatus: the stored status is the provider's own last status, and GetPodStatus takes precedence over a
// list that repeats it.
func TestUpdateCarriesTheProvidersOwnStatus(t *testing.T) {
	b := memory.New()
	provider := &asGiven{Backend: b, given: map[string]*corev1.Pod{}}
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(2 * time.Second)
		w.api.Change("d", "p", func(p *corev1.Pod) {
			p.Spec.Containers[0].Image = "j"
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "theirs", Status: corev1.ConditionTrue})
		})
		w.pass(2 * time.Second)
		provider.mu.Lock()
		status := provider.given["d/p"].Status
		provider.mu.Unlock()
		if status.Phase != corev1.PodRunning || len(status.ContainerStatuses) != 1 || len(status.Conditions) != 0 {
			t.Errorf("handed status is %+v, want the one that the provider reported", status)
		}
		b.Change("d/p", func(p *corev1.Pod) { *p = *memory.Ended(p, 3) })
		w.pass(10 * time.Second)
		w.wantPhase("p", corev1.PodFailed)
	}, func(cfg *PodControllerConfig) { cfg.Provider = provider })
}
