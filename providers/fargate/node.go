// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/nodehealth"
)

// ConfigureNode implements cli.NodeConfigurer.
func (p *provider) ConfigureNode(_ context.Context, n *corev1.Node) {
	nodehealth.Well(n, "Fargate")
	n.Status.Capacity, n.Status.Allocatable = p.config.Capacity.DeepCopy(), p.config.Capacity.DeepCopy()
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels["eks.amazonaws.com/compute-type"] = "fargate" // the agents of EKS keep away from nodes that have it
	n.Status.NodeInfo.Architecture = map[string]string{"X86_64": "amd64", "ARM64": "arm64"}[p.config.Architecture]
}

// Ping implements node.NodeProvider. It costs no request: the rounds that ask for the states of pods tell whether ECS answers.
func (p *provider) Ping(ctx context.Context) error {
	if err := p.cache.Away(); err != nil {
		return fmt.Errorf("ECS does not tell the states of pods %w", err)
	}
	if err := p.cache.Wait(ctx); err != nil {
		return errors.Join(errors.New("ECS has not answered yet"), err)
	}
	return nil
}

// NotifyNodeStatus implements node.NodeProvider: what the node offers is what the configuration says.
func (p *provider) NotifyNodeStatus(context.Context, func(*corev1.Node)) {}
