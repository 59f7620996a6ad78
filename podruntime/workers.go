// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/crilog"
)

// ensureWorker returns the worker of a pod, and makes it if there is none.
func (r *Runtime) ensureWorker(uid types.UID, namespace, name string) *worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.workers[uid]
	if w == nil {
		w = newWorker(r, uid, namespace, name)
		r.workers[uid] = w
		if ctx := r.ctx; ctx != nil {
			r.wg.Go(func() { w.run(ctx) })
		}
	}
	return w
}

// sendInput gives a worker new input, and makes the worker if there is none, also if the earlier worker has just
// found that nothing of its pod is left.
func (r *Runtime) sendInput(pod *corev1.Pod, put func(*inbox)) {
	for !r.ensureWorker(pod.UID, pod.Namespace, pod.Name).changeInbox(put) {
	}
}

// findWorker returns the worker of a pod, nil if there is none.
func (r *Runtime) findWorker(uid types.UID) *worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.workers[uid]
}

// workerNamed returns the worker of the pod with that name, or of the newest of several pods.
func (r *Runtime) workerNamed(namespace, name string) *worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found *worker
	for _, w := range r.workers {
		if w.namespace == namespace && w.name == name && (found == nil || w.born.After(found.born)) {
			found = w
		}
	}
	return found
}

// allWorkers returns all workers.
func (r *Runtime) allWorkers() []*worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*worker, 0, len(r.workers))
	for _, w := range r.workers {
		list = append(list, w)
	}
	return list
}

// dropWorker forgets an ended worker.
func (r *Runtime) dropWorker(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.workers[w.uid] == w {
		delete(r.workers, w.uid)
	}
}

// wakeWorker makes the worker of a pod look again.
func (r *Runtime) wakeWorker(uid types.UID) {
	if w := r.findWorker(uid); w != nil {
		w.changeInbox(func(*inbox) {})
	}
}

// runBackground runs work in the background, and reports whether it does: it does not once the node stops.
func (r *Runtime) runBackground(work func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil {
		return false
	}
	r.wg.Go(work)
	return true
}

// beginWithin is begin for work ended by the stop of the node.
func (r *Runtime) beginWithin(work func(ctx context.Context)) bool {
	r.mu.Lock()
	ctx := r.ctx
	r.mu.Unlock()
	return ctx != nil && r.runBackground(func() { work(ctx) })
}

// identifyRuntime returns the runtime's own name, the scheme of container IDs, and finds its abilities. It asks once.
func (r *Runtime) identifyRuntime(ctx context.Context) (string, error) {
	r.mu.Lock()
	name := r.name
	r.mu.Unlock()
	if name != "" {
		return name, nil
	}
	version, err := r.cfg.Runtime.Version(ctx, "v1")
	if err != nil {
		return "", fmt.Errorf("ask the container runtime for its name: %w", err)
	}
	status, err := r.cfg.Runtime.Status(ctx, false)
	if err != nil {
		return "", fmt.Errorf("read the abilities of the container runtime: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.name = version.RuntimeName
	for _, h := range status.GetRuntimeHandlers() {
		if h.GetFeatures().GetRecursiveReadOnlyMounts() {
			r.recursive[h.GetName()] = true
		}
	}
	return r.name, nil
}

// recursiveReadOnly reports whether the runtime can mount read-only for the pod, including the mounts below.
func (r *Runtime) recursiveReadOnly(pod *corev1.Pod) bool {
	if pod != nil && pod.Spec.RuntimeClassName != nil && *pod.Spec.RuntimeClassName != "" {
		return false // the meaning of the class is not known here
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recursive[""]
}

// runningLogs returns the logs of running containers.
func (r *Runtime) runningLogs(context.Context) ([]crilog.Container, error) {
	var list []crilog.Container
	for _, w := range r.allWorkers() {
		for _, i := range w.runningInstances() {
			list = append(list, crilog.Container{ID: i.id, Path: i.log})
		}
	}
	return list, nil
}
