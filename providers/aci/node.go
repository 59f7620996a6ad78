// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// ConfigureNode implements service.NodeConfigurer.
func (d *driver) ConfigureNode(_ context.Context, n *corev1.Node) {
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	// As azure-aci has it: the cloud controller of AKS makes no routes for the node, and does not delete it as a machine that is gone.
	n.Labels["kubernetes.azure.com/managed"] = "false"
}
