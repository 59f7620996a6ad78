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

// reflectTimeout bounds the wait of callers until the state of a pod reflects their last request.
const reflectTimeout = 2 * time.Second

// CreatePod records the desired pod, and returns.
func (r *Runtime) CreatePod(_ context.Context, pod *corev1.Pod) error {
	if uid := string(pod.UID); !filepath.IsLocal(uid) || filepath.Base(uid) != uid || uid == "." {
		return errdefs.InvalidInputf("pod %s/%s: %q cannot be a UID: the files of a pod are named by its UID", pod.Namespace, pod.Name, uid)
	}
	if err := r.volumes.Check(pod); err != nil {
		return err
	}
	r.workers.sendRequest(pod, func(in *inbox) { in.pod = pod })
	return nil
}

// UpdatePod records the new spec of the pod, and returns.
func (r *Runtime) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	if err := r.lists.awaitFirst(ctx); err != nil {
		return err
	}
	w := r.workers.findWorker(pod.UID)
	if w == nil || !w.mail.putRequest(func(in *inbox) { in.pod = pod }) {
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
	told := w != nil && w.mail.putRequest(func(in *inbox) {
		if pod.Spec.NodeName != "" { // otherwise pod is the skeleton handed out by this runtime
			in.pod = pod
		}
		in.stop = stop
	})
	if !told {
		return errdefs.NotFoundf("pod %s/%s (UID %s)", pod.Namespace, pod.Name, pod.UID)
	}
	return nil
}

// AnswersForAllPods reports that a pod without a state in the runtime does not exist: calls wait for the first list of pods, and after a reboot of
// the machine, the runtime has no pods.
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
