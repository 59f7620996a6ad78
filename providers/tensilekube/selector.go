// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// annotationSelector is the annotation with which a pod selects nodes of the lower cluster. The value is JSON
// with the fields of a placement, in the format of a pod spec.
const annotationSelector = "clusterSelector"

// selector returns the annotation, with the fields that pods may set. Tolerations of a pod and of the
// configuration are combined, because the nodes that the configuration selects may have taints that the pod does
// not know.
func (c Config) selector() remotecluster.PlacementAnnotation {
	return remotecluster.PlacementAnnotation{Name: annotationSelector, Key: "clusterSelector", Allowed: c.ClusterSelector, AddTolerations: true}
}

// podPlacement returns the placement of a pod in the lower cluster. The configuration sets the fields that the
// pod does not set.
func (c Config) podPlacement(pod *corev1.Pod) (remotecluster.Placement, error) {
	return c.selector().Place(pod, c.Placement)
}
