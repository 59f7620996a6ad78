// SPDX-License-Identifier: Apache-2.0

package node

import (
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// earlyReports buffers the provider's reports until the caches are filled. Until then every pod seems unknown, and a backend may report the
// end of a pod only once. It buffers at most two reports per pod, however long the API server is unavailable.
type earlyReports struct {
	over atomic.Bool
	mu   sync.Mutex
	held []*heldReports           // guarded by mu; in the order in which their pods were first reported
	of   map[podName]*heldReports // guarded by mu
}

type podName struct {
	key string
	uid types.UID
}

// heldReports are the held reports of one pod.
type heldReports struct {
	pod    *corev1.Pod // its names only
	end    *report     // the first report of the end of the pod, or nil
	newest *report
}

// holdReport buffers the report until takeHeld is called. It returns false if takeHeld was called before.
func (e *earlyReports) holdReport(pod *corev1.Pod, r *report) bool {
	if e.over.Load() {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over.Load() {
		return false
	}
	name := podName{keyOf(pod), pod.UID}
	h := e.of[name]
	if h == nil {
		h = &heldReports{pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}}
		if e.of == nil {
			e.of = map[podName]*heldReports{}
		}
		e.of[name], e.held = h, append(e.held, h)
	}
	if h.newest = r; h.end == nil && lifecycle.Terminal(r.status) {
		h.end = r
	}
	return true
}

// takeHeld passes the buffered reports to report. New reports wait meanwhile, so that an older report does not replace a newer one.
func (e *earlyReports) takeHeld(report func(*corev1.Pod, *report)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.held {
		if h.end != nil {
			report(h.pod, h.end)
		}
		if h.newest != h.end {
			report(h.pod, h.newest)
		}
	}
	e.held, e.of = nil, nil
	e.over.Store(true)
}
