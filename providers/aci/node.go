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
	// The same label as azure-aci. The cloud controller of AKS then makes no routes for the node, and does not
	// delete the node as a lost machine.
	n.Labels["kubernetes.azure.com/managed"] = "false"
}
