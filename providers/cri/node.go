// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// ConfigureNode writes into n what the machine offers, or what the configuration says of it.
func (p *provider) ConfigureNode(ctx context.Context, n *corev1.Node) {
	p.Runtime.ConfigureNode(ctx, n)
	p.configured(n)
}

// NotifyNodeStatus implements node.NodeProvider.
func (p *provider) NotifyNodeStatus(ctx context.Context, notify func(*corev1.Node)) {
	p.Runtime.NotifyNodeStatus(ctx, func(n *corev1.Node) {
		n = n.DeepCopy()
		p.configured(n)
		notify(n)
	})
}

// configured overrides what the configuration names.
func (p *provider) configured(n *corev1.Node) {
	if len(p.capacity) == 0 {
		return
	}
	for _, list := range []*corev1.ResourceList{&n.Status.Capacity, &n.Status.Allocatable} {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		maps.Copy(*list, p.capacity)
	}
}
