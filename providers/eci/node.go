// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/nodehealth"
)

// ConfigureNode implements cli.NodeConfigurer.
func (p *provider) ConfigureNode(_ context.Context, n *corev1.Node) {
	nodehealth.Well(n, "ECI") // Ping says when it is not
	n.Status.Capacity = p.config.Capacity.DeepCopy()
	n.Status.Allocatable = p.config.Capacity.DeepCopy()
	n.Status.NodeInfo.ContainerRuntimeVersion = "eci://" + apiVersion
}

// Ping implements node.NodeProvider. It asks for nothing: the last list says how ECI is.
func (p *provider) Ping(ctx context.Context) error {
	if err := p.wait(ctx); err != nil {
		return err
	}
	return p.cache.Away()
}

// NotifyNodeStatus implements node.NodeProvider: the node never changes.
func (p *provider) NotifyNodeStatus(context.Context, func(*corev1.Node)) {}
