// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// reflectTimeout bounds the wait of callers for the effect of their last request on a pod.
const reflectTimeout = 2 * time.Second

// CreatePod records the wanted pod, and returns.
func (r *Runtime) CreatePod(_ context.Context, pod *corev1.Pod) error {
	if uid := string(pod.UID); !filepath.IsLocal(uid) || filepath.Base(uid) != uid || uid == "." {
		return errdefs.InvalidInputf("pod %s/%s: %q cannot be a UID: the files of a pod are named by its UID", pod.Namespace, pod.Name, uid)
	}
	if err := r.volumes.Check(pod); err != nil {
		return err
	}
	r.workers.sendInput(pod, func(in *inbox) { in.pod, in.controls = pod, in.controls+1 })
	return nil
}

// UpdatePod records the new spec of the pod, and returns.
func (r *Runtime) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	if err := r.lists.awaitFirst(ctx); err != nil {
		return err
	}
	w := r.workers.findWorker(pod.UID)
	if w == nil || !w.changeInbox(func(in *inbox) { in.pod, in.controls = pod, in.controls+1 }) {
		return errdefs.NotFoundf("the container runtime has no pod with the UID %s", pod.UID)
	}
	return nil
}

// DeletePod records the order to stop the pod within its grace period, and returns.
func (r *Runtime) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	if err := r.lists.awaitFirst(ctx); err != nil {
		return err
	}
	w := r.workers.findWorker(pod.UID)
	if pod.UID == "" {
		w = r.workers.workerNamed(pod.Namespace, pod.Name)
	}
	stop := &stopRequest{grace: podspec.Grace(pod), at: time.Now()}
	told := w != nil && w.changeInbox(func(in *inbox) {
		if pod.Spec.NodeName != "" { // otherwise pod is the skeleton handed out by this runtime
			in.pod = pod
		}
		in.stop, in.controls = stop, in.controls+1
	})
	if !told {
		return errdefs.NotFoundf("pod %s/%s (UID %s)", pod.Namespace, pod.Name, pod.UID)
	}
	return nil
}

// AnswersForAllPods reports that a pod without a state in the runtime does not exist: there are no answers
// before the first list of its pods, and after a reboot of the machine the runtime has no pods.
func (r *Runtime) AnswersForAllPods() bool { return true }

// GetPod returns the pod with that name.
func (r *Runtime) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if err := r.lists.awaitFirst(ctx); err != nil {
		return nil, err
	}
	w := r.workers.workerNamed(namespace, name)
	if w == nil {
		return nil, errdefs.NotFoundf("pod %s/%s", namespace, name)
	}
	patience, cancel := context.WithTimeout(ctx, reflectTimeout)
	defer cancel()
	return w.currentPod(ctx, patience)
}

// GetPodStatus returns the status of the pod with that name.
func (r *Runtime) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := r.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns all pods of the runtime.
func (r *Runtime) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	if err := r.lists.awaitFirst(ctx); err != nil {
		return nil, err
	}
	if err := r.lists.lastError(); err != nil {
		return nil, fmt.Errorf("list the containers of the container runtime: %w", err)
	}
	patience, cancel := context.WithTimeout(ctx, reflectTimeout)
	defer cancel()
	var pods []*corev1.Pod
	for _, w := range r.workers.allWorkers() {
		pod, err := w.currentPod(ctx, patience)
		switch {
		case errdefs.IsNotFound(err):
		case err != nil:
			return nil, err
		default:
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// currentPod returns the pod with a status that shows the last request, unless patience ends earlier.
func (w *worker) currentPod(ctx, patience context.Context) (*corev1.Pod, error) {
	select {
	case <-w.settled:
	case <-ctx.Done():
		return nil, fmt.Errorf("the container runtime has not told yet how pod %s/%s is: %w", w.namespace, w.name, ctx.Err())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for expected := w.asked; w.reflected < expected && !w.ended && patience.Err() == nil; {
		fresh := w.fresh
		w.mu.Unlock()
		select {
		case <-fresh:
		case <-patience.Done():
		}
		w.mu.Lock()
	}
	if w.ended || w.shown == nil {
		return nil, errdefs.NotFoundf("pod %s/%s", w.namespace, w.name)
	}
	return w.shown.DeepCopy(), nil
}

// runningInstances returns the running instances, by the name of their container.
func (w *worker) runningInstances() map[string]instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]instance{}
	for name, list := range w.places {
		if len(list) > 0 && list[0].running {
			all[name] = list[0]
		}
	}
	return all
}

// findInstance returns an instance of a container.
func (w *worker) findInstance(container, id string) (instance, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.places[container] {
		if i.id == id {
			return i, true
		}
	}
	return instance{}, false
}

// readySandbox returns the ID of the sandbox of the pod if it is ready, else "".
func (w *worker) readySandbox() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready
}
