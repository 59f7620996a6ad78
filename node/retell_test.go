// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// starter is a provider that starts containers one by one, and records the phase that it receives.
type starter struct {
	memory.Notifying
	phase *atomic.Value
}

func (starter) UsePodObjects(PodObjects) {}

func (s starter) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	s.phase.Store(pod.Status.Phase)
	return s.Notifying.UpdatePod(ctx, pod)
}

// TestRestartTellsAProviderWithoutMemoryWhatItHadReported: the status shows, for example, which containers had started.
func TestRestartTellsAProviderWithoutMemoryWhatItHadReported(t *testing.T) {
	var phase atomic.Value
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", ""))
		w.pass(time.Second)
		w.wantPhase("p", corev1.PodRunning)
		w.halt()
		b.Mute()
		w.start()
		w.pass(time.Minute)
		if got := phase.Load(); got != corev1.PodRunning {
			t.Errorf("after a restart the provider was told of a pod in phase %v, want Running", got)
		}
	}, func(cfg *PodControllerConfig) { cfg.Provider = starter{cfg.Provider.(memory.Notifying), &phase} })
}

// TestRestartWithNothingChangedTellsOfNoUpdate: a provider without memory receives its pods again after a restart, but the pod has an
// update event only after a change.
func TestRestartWithNothingChangedTellsOfNoUpdate(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		told   int
	}{
		"nothing":  {func(*corev1.Pod) {}, 0},
		"a label":  {func(p *corev1.Pod) { p.Labels = map[string]string{"a": "2"} }, 1},
		"an image": {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "j" }, 1},
	} {
		t.Run(name+" has changed", func(t *testing.T) {
			b := memory.New()
			var phase atomic.Value
			inWorld(t, b, func(w *world) {
				w.start()
				p := bound("p", "")
				p.Labels = map[string]string{"a": "1"}
				w.api.Create(p)
				w.pass(time.Second)
				w.halt()
				b.Mute()
				w.api.Change("d", "p", tt.change)
				w.events()
				w.start()
				w.pass(time.Minute)
				if phase.Load() == nil {
					t.Error("the provider was not told the pod again")
				}
				told := slices.DeleteFunc(w.events(), func(e string) bool { return !strings.Contains(e, eventUpdateSuccess) })
				if len(told) != tt.told {
					t.Errorf("events %q, want %d of an update", told, tt.told)
				}
			}, func(cfg *PodControllerConfig) { cfg.Provider = starter{cfg.Provider.(memory.Notifying), &phase} })
		})
	}
}
