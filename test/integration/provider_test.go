// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// polled is a complete provider with a backend in memory, without the ability node.PodNotifier. changed is
// raised after each change of the backend.
type polled struct {
	*memory.Backend
	memory.NoRequests
	changed *signal
}

func (p polled) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	defer p.changed.raise()
	return p.Backend.CreatePod(ctx, pod)
}

func (p polled) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	defer p.changed.raise()
	return p.Backend.UpdatePod(ctx, pod)
}

func (p polled) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	defer p.changed.raise()
	return p.Backend.DeletePod(ctx, pod)
}

// notifying is polled with NotifyPods.
type notifying struct{ polled }

func (p notifying) NotifyPods(ctx context.Context, notify func(*corev1.Pod)) {
	memory.Notifying{Backend: p.Backend}.NotifyPods(ctx, func(pod *corev1.Pod) {
		defer p.changed.raise()
		notify(pod)
	})
}
