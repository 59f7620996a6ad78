// SPDX-License-Identifier: Apache-2.0

package admiralty

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// AnnotationConstraints is the annotation with the node constraints of an elected pod. They apply to nodes of the
// target cluster. The value is JSON with the fields of a placement, in the format of a pod spec.
const AnnotationConstraints = "admiralty.virtual-kubelet.io/constraints"

// constraints returns the annotation, with the fields that pods may set.
func (c Config) constraints() remotecluster.PlacementAnnotation {
	return remotecluster.PlacementAnnotation{Name: AnnotationConstraints, Key: "constraints", Allowed: c.Constraints}
}

// PlacePod returns the placement of a pod in the target cluster.
func (c Config) PlacePod(pod *corev1.Pod) (remotecluster.Placement, error) {
	return c.constraints().Place(pod, c.Placement)
}
