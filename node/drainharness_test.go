// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// stops records the stop requests at a backend.
type stops struct {
	memory.Notifying
	mu    sync.Mutex
	asked []stopped // guarded by mu
}

type stopped struct {
	key   string
	grace int64
	at    time.Time
}

func (s *stops) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	s.mu.Lock()
	s.asked = append(s.asked, stopped{keyOf(pod), *pod.DeletionGracePeriodSeconds, time.Now()})
	s.mu.Unlock()
	return s.Notifying.DeletePod(ctx, pod)
}

// of returns the first stop of the pod, and fails the test if there is not exactly one.
func (s *stops) of(t *testing.T, name string) stopped {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []stopped
	for _, one := range s.asked {
		if one.key == "d/"+name {
			found = append(found, one)
		}
	}
	if len(found) != 1 {
		t.Fatalf("pod %s was stopped %d times, want once: %+v", name, len(found), found)
	}
	return found[0]
}

// recorded makes s record the stops of the provider.
func (s *stops) recorded(cfg *PodControllerConfig) {
	s.Notifying = cfg.Provider.(memory.Notifying)
	cfg.Provider = s
}

// ranked returns a bound pod with a priority and a grace period.
func ranked(name string, priority int32, grace int64) *corev1.Pod {
	p := bound(name, types.UID("uid-"+name))
	p.Spec.Priority, p.Spec.TerminationGracePeriodSeconds = &priority, &grace
	return p
}

// wantShutDown fails the test unless the pod ended with the status for a node shutdown.
func (w *world) wantShutDown(name string) {
	w.Helper()
	p := w.api.Pod("d", name)
	if p == nil {
		w.Errorf("pod %s is gone, want its object to stay", name)
		return
	}
	if p.Status.Phase != corev1.PodFailed || p.Status.Reason != "Terminated" ||
		p.Status.Message != "Pod was terminated in response to imminent node shutdown." {
		w.Errorf("pod %s is %s %q %q, want Failed, Terminated", name, p.Status.Phase, p.Status.Reason, p.Status.Message)
	}
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
	if i < 0 || p.Status.Conditions[i].Status != corev1.ConditionTrue || p.Status.Conditions[i].Reason != "TerminationByKubelet" {
		w.Errorf("pod %s has no condition DisruptionTarget of the kubelet: %+v", name, p.Status.Conditions)
	}
}
