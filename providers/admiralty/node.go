// SPDX-License-Identifier: Apache-2.0

package admiralty

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// ConfigureNode sets the resources of the target and labels with its identity in n.
func (p *provider) ConfigureNode(ctx context.Context, n *corev1.Node) {
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[LabelProvider] = ProviderName
	if p.config.TargetNamespace == "" {
		n.Labels[LabelClusterTarget] = p.config.Target
	} else {
		n.Labels[LabelTargetNamespace], n.Labels[LabelTarget] = p.config.TargetNamespace, p.config.Target
	}
	p.Cluster.ConfigureNode(ctx, n)
}
