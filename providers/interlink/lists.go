// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// sync asks the server, once, for the pods that the cluster has on this node: after a restart they are found by it.
func (p *provider) sync(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.synced || p.in.Pods == nil {
		return nil
	}
	if p.in.Listed != nil && !p.in.Listed() {
		return errors.New("interlink provider: the pods of this node are not listed yet")
	}
	pods, err := p.in.Pods.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("interlink provider: pods of this node: %w", err)
	}
	p.begins()
	if len(pods) > 0 {
		said, err := p.tracker.ask(ctx, pods, nil, len(pods))
		if err != nil {
			return err
		}
		for _, pod := range pods {
			s, has := said.has[pod.UID]
			switch {
			case has:
				p.tracker.adopt(pod, s)
			case p.tracker.get(pod.UID) != nil || terminal(pod.Status.Phase):
			case said.lacks[pod.UID]:
				p.tracker.lacks(pod)
			case pod.Status.Phase == corev1.PodRunning: // the plugin fails for this pod: it stays as it was seen last
				p.tracker.keep(pod)
			}
		}
	}
	p.synced = true
	return nil
}

// GetPod implements node.PodLifecycleHandler.
func (p *provider) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if err := p.sync(ctx); err != nil {
		return nil, fmt.Errorf("get pod %s/%s: %w", namespace, name, err)
	}
	pod := p.tracker.find(namespace, name)
	if pod == nil {
		lacked := p.tracker.lackedPods() // all of them, as a plugin may repeat the answer for the next request
		i := slices.IndexFunc(lacked, func(k *corev1.Pod) bool { return k.Namespace == namespace && k.Name == name })
		var err error
		if i >= 0 {
			err = p.askAgain(ctx, lacked)
		}
		if pod = p.tracker.find(namespace, name); err == nil && pod == nil && i >= 0 {
			err = p.early(lacked[i])
		}
		if err != nil {
			return nil, fmt.Errorf("get pod %s/%s: %w", namespace, name, err)
		}
	}
	if pod != nil {
		return pod.DeepCopy(), nil
	}
	return nil, errdefs.NotFoundf("get pod %s/%s: the interLink API server does not have it", namespace, name)
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
	if err := p.sync(ctx); err != nil {
		return nil, fmt.Errorf("get pods: %w", err)
	}
	if err := p.askAgain(ctx, p.tracker.lackedPods()); err != nil {
		return nil, fmt.Errorf("get pods: %w", err)
	}
	return p.tracker.all(), nil
}
