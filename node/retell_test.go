// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// starter is a provider that starts containers one by one, and notes the phase it is told of.
type starter struct {
	memory.Notifying
	phase *atomic.Value
}

func (starter) UsePodObjects(PodObjects) {}

func (s starter) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	s.phase.Store(pod.Status.Phase)
	return s.Notifying.UpdatePod(ctx, pod)
}

// TestRestartTellsAProviderWithoutMemoryWhatItHadReported: which of its containers had started, for example.
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
