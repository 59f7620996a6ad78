// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/crilog"
)

// workers has the worker of each pod, and the parts of the Runtime that all workers use.
type workers struct {
	exec       *executor
	background *background
	lists      *lists
	info       *runtimeInfo
	conditions *nodeConditions
	sysctls    criconfig.Sysctls
	files      *podFiles
	meter      *meter
	limits     *diskLimits
	notify     func(*corev1.Pod) // set before the first pod, constant afterwards

	mu      sync.Mutex
	byUID   map[types.UID]*worker // guarded by mu
	started bool                  // guarded by mu: new workers start at once
}

// startWorkers starts the existing workers, and makes new workers start at once.
func (a *workers) startWorkers() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.started = true
	for _, w := range a.byUID {
		a.background.beginWithin(w.run)
	}
}

// ensureWorker returns the worker of a pod, and makes it if there is none.
func (a *workers) ensureWorker(id podID) *worker {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.byUID[id.uid]
	if w == nil {
		w = newWorker(a, id)
		a.byUID[id.uid] = w
		if a.started {
			a.background.beginWithin(w.run)
		}
	}
	return w
}

// sendRequest sends a request of the pod controller to the worker of a pod. It makes a worker if there is none, or if the earlier worker has just
// ended.
func (a *workers) sendRequest(pod *corev1.Pod, change func(*inbox)) {
	for !a.ensureWorker(podID{pod.UID, pod.Namespace, pod.Name}).mail.putRequest(change) {
	}
}

// findWorker returns the worker of a pod, or nil if there is none.
func (a *workers) findWorker(uid types.UID) *worker {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byUID[uid]
}

// workerNamed returns the worker of the pod with that name, or of the newest of several pods.
func (a *workers) workerNamed(namespace, name string) *worker {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found *worker
	for _, w := range a.byUID {
		if w.id.namespace == namespace && w.id.name == name && (found == nil || w.born.After(found.born)) {
			found = w
		}
	}
	return found
}

// allWorkers returns all workers.
func (a *workers) allWorkers() []*worker {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]*worker, 0, len(a.byUID))
	for _, w := range a.byUID {
		list = append(list, w)
	}
	return list
}

// dropWorker forgets an ended worker.
func (a *workers) dropWorker(w *worker) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byUID[w.id.uid] == w {
		delete(a.byUID, w.id.uid)
	}
}

// wakeWorker triggers a pass of the worker of a pod.
func (a *workers) wakeWorker(uid types.UID) {
	if w := a.findWorker(uid); w != nil {
		w.mail.putInput(func(*inbox) {})
	}
}

// runningLogs returns the logs of running containers.
func (a *workers) runningLogs(context.Context) ([]crilog.Container, error) {
	var list []crilog.Container
	for _, w := range a.allWorkers() {
		for _, i := range w.report.runningInstances() {
			list = append(list, crilog.Container{ID: i.id, Path: i.log})
		}
	}
	return list, nil
}

// shownPod returns the last report of the pod with that name, and its pod, which the caller must not change.
func (a *workers) shownPod(namespace, name string) (*report, *corev1.Pod, error) {
	w := a.workerNamed(namespace, name)
	if w == nil {
		return nil, nil, errdefs.NotFoundf("pod %s/%s", namespace, name)
	}
	pod := w.report.lastPod()
	if pod == nil {
		return nil, nil, errdefs.NotFoundf("pod %s/%s is not known yet to the container runtime", namespace, name)
	}
	return w.report, pod, nil
}
