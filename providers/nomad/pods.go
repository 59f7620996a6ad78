// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// UpdatePod implements node.PodLifecycleHandler: it remembers the spec.
func (p *provider) UpdatePod(_ context.Context, pod *corev1.Pod) error {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	e := p.store.pods[pod.UID]
	if e == nil {
		p.store.early[pod.UID] = pod.DeepCopy() // the first list may tell of it
		return nil
	}
	e.pod = pod.DeepCopy()
	if e.again.IsZero() && hasToken(pod) {
		e.again = time.Now().Add(renewFirst(pod))
	}
	p.store.touch(e)
	return nil
}

// GetPod implements node.PodLifecycleHandler.
func (p *provider) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if err := p.wait(ctx, p.synced); err != nil {
		return nil, err
	}
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	e := p.store.find(namespace, name)
	if e == nil {
		return nil, errdefs.NotFoundf("pod %s/%s is not at Nomad", namespace, name)
	}
	return p.store.show(e), nil
}

// GetPodStatus implements node.PodLifecycleHandler.
func (p *provider) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods implements node.PodLifecycleHandler.
func (p *provider) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	if err := p.wait(ctx, p.synced); err != nil {
		return nil, err
	}
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	pods := make([]*corev1.Pod, 0, len(p.store.pods))
	for _, e := range p.store.pods {
		if !e.hidden {
			pods = append(pods, p.store.show(e))
		}
	}
	return pods, nil
}
