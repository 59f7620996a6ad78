// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
)

var podStartDuration = metrics.NewHistogram("kubelet_pod_start_duration_seconds", "Time from the first sight of a pod to its phase Running.",
	0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600)

// podStarts measures how long pods take to start. It is an event handler of their informer.
type podStarts struct {
	mu   sync.Mutex
	seen map[types.UID]time.Time // guarded by mu; pods that are not running yet
}

var _ cache.ResourceEventHandler = (*podStarts)(nil)

func newPodStarts() *podStarts { return &podStarts{seen: map[types.UID]time.Time{}} }

// OnAdd implements cache.ResourceEventHandler.
func (s *podStarts) OnAdd(obj any, _ bool) { s.see(obj) }

// OnUpdate implements cache.ResourceEventHandler.
func (s *podStarts) OnUpdate(_, obj any) { s.see(obj) }

// OnDelete implements cache.ResourceEventHandler.
func (s *podStarts) OnDelete(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.seen, pod.UID)
	}
}

func (s *podStarts) see(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first, known := s.seen[pod.UID]
	switch waits := pod.Status.Phase == corev1.PodPending || pod.Status.Phase == ""; {
	case waits && !known:
		s.seen[pod.UID] = time.Now()
	case !waits && known:
		delete(s.seen, pod.UID)
		if pod.Status.Phase == corev1.PodRunning {
			podStartDuration.Observe(time.Since(first).Seconds())
		}
	}
}
