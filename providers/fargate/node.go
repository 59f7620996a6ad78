// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// ConfigureNode implements service.NodeConfigurer.
func (d *driver) ConfigureNode(_ context.Context, n *corev1.Node) {
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels["eks.amazonaws.com/compute-type"] = "fargate" // the agents of EKS avoid nodes with this label
	n.Status.NodeInfo.Architecture = map[string]string{"X86_64": "amd64", "ARM64": "arm64"}[d.config.Architecture]
}
