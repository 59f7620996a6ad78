// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// ConfigureNode implements service.NodeConfigurer.
func (d *driver) ConfigureNode(_ context.Context, n *corev1.Node) {
	n.Status.NodeInfo.ContainerRuntimeVersion = "zun://" + microversion
}
