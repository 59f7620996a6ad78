// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// registration has fields of the node as registered. The NodeSpec itself belongs to the node controller once the controller runs.
type registration struct {
	taints     []corev1.Taint
	providerID string
	pods       int32 // the capacity for pods
}

func registrationOf(n *corev1.Node) registration {
	pods := min(n.Status.Capacity.Pods().Value(), math.MaxInt32)
	return registration{taints: slices.Clone(n.Spec.Taints), providerID: n.Spec.ProviderID, pods: int32(pods)} //nolint:gosec // min bounds the number
}
