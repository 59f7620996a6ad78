// SPDX-License-Identifier: Apache-2.0

package node

import (
	"maps"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// earlyReports holds what the provider reports before the caches are filled: until then every pod seems unknown, and of a pod that ends
// meanwhile a backend may tell once.
type earlyReports struct {
	over atomic.Bool
	mu   sync.Mutex
	held []*corev1.Pod   // guarded by mu; in the order of arrival
	last map[podName]int // guarded by mu; index in held
}

type podName struct {
	key string
	uid types.UID
}

// hold keeps the report until take is called, and reports false if that was before. It replaces the one before, but for one that says how
// the pod ended.
func (e *earlyReports) hold(pod *corev1.Pod) bool {
	if e.over.Load() {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over.Load() {
		return false
	}
	name, copied := podName{keyOf(pod), pod.UID}, &corev1.Pod{ObjectMeta: pod.ObjectMeta, Status: *pod.Status.DeepCopy()}
	copied.Labels, copied.Annotations = maps.Clone(pod.Labels), maps.Clone(pod.Annotations)
	if i, before := e.last[name]; before && !lifecycle.Terminal(&e.held[i].Status) {
		e.held[i] = copied
		return true
	}
	if e.last == nil {
		e.last = map[podName]int{}
	}
	e.last[name] = len(e.held)
	e.held = append(e.held, copied)
	return true
}

// take hands over what was held. Reports that come meanwhile wait, so that the older one does not count as the newer.
func (e *earlyReports) take(report func(*corev1.Pod)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, pod := range e.held {
		report(pod)
	}
	e.held, e.last = nil, nil
	e.over.Store(true)
}
