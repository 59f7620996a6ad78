// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// report is the last report about a pod: its worker writes it, and any goroutine may read it.
type report struct {
	settled chan struct{} // closed by the worker when the initial state of the runtime is known

	mu         sync.Mutex
	pod        *corev1.Pod           // guarded by mu: replaced, never changed; nil: the state is unknown
	instances  map[string][]instance // guarded by mu: the instances of each container, newest first
	sandbox    string                // guarded by mu: the ready sandbox
	hasSandbox bool                  // guarded by mu: the runtime has a sandbox of the pod
	reflected  int                   // guarded by mu: number of requests included in the report
	fresh      chan struct{}         // guarded by mu: closed when reflected grows, and at the end
	ended      bool                  // guarded by mu: the pod is completely removed
}

func newReport() *report { return &report{settled: make(chan struct{}), fresh: make(chan struct{})} }

// publishView publishes the pod in its current state.
func (r *report) publishView(pod *corev1.Pod, seen *view) {
	instances, sandbox := seen.containerInstances(), ""
	if s := seen.newestSandbox(); s != nil && s.Ready {
		sandbox = s.ID
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pod, r.instances, r.sandbox, r.hasSandbox = pod, instances, sandbox, len(seen.observed.Sandboxes) > 0
}

// publishUnread publishes the pod without a state, if there is no report yet.
func (r *report) publishUnread(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pod == nil {
		r.pod = pod
	}
}

// reflectRequests records that the report reflects the first n requests.
func (r *report) reflectRequests(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reflected != n {
		r.reflected = n
		close(r.fresh)
		r.fresh = make(chan struct{})
	}
}

// settle releases waiting callers when the runtime's state is known, or cannot be determined. Only the worker calls it.
func (r *report) settle() {
	select {
	case <-r.settled:
	default:
		close(r.settled)
	}
}

// end reports to all callers that the pod is completely removed.
func (r *report) end() {
	r.mu.Lock()
	r.ended = true
	close(r.fresh)
	r.mu.Unlock()
	r.settle()
}

// awaitRequests returns the pod with a status that reflects the first n requests, unless patience ends earlier. It returns nil for a pod that does
// not exist.
func (r *report) awaitRequests(patience context.Context, n int) *corev1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.reflected < n && !r.ended && patience.Err() == nil {
		fresh := r.fresh
		r.mu.Unlock()
		select {
		case <-fresh:
		case <-patience.Done():
		}
		r.mu.Lock()
	}
	if r.ended {
		return nil
	}
	return r.pod.DeepCopy()
}

// lastPod returns the pod of the last report, or nil if there was none. The caller must not change it.
func (r *report) lastPod() *corev1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pod
}

// runningInstances returns the running instances, by the name of their container.
func (r *report) runningInstances() map[string]instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]instance{}
	for name, list := range r.instances {
		if len(list) > 0 && list[0].running {
			all[name] = list[0]
		}
	}
	return all
}

// findInstance returns an instance of a container.
func (r *report) findInstance(container, id string) (instance, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range r.instances[container] {
		if i.id == id {
			return i, true
		}
	}
	return instance{}, false
}

// readySandbox returns the ID of the sandbox of the pod if it is ready, else "".
func (r *report) readySandbox() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sandbox
}

// hasSandboxes reports whether the runtime has a sandbox of the pod, and hasContainers whether it has containers.
func (r *report) hasSandboxes() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hasSandbox
}

func (r *report) hasContainers() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.instances) > 0
}
