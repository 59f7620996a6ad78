// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// annotationSelector is the annotation of a pod that selects nodes of the lower cluster: JSON with the fields
// of a placement, as in a pod.
const annotationSelector = "clusterSelector"

// selector returns the annotation with the fields that pods may set. Tolerations of a pod are added to the configured
// tolerations, because nodes selected by the configuration may have taints unknown to the pod.
func (c Config) selector() remotecluster.PlacementAnnotation {
	return remotecluster.PlacementAnnotation{Name: annotationSelector, Key: "clusterSelector", Allowed: c.ClusterSelector, AddTolerations: true}
}

// podPlacement returns where a pod may run in the lower cluster. The configuration supplies the fields that the pod
// leaves open.
func (c Config) podPlacement(pod *corev1.Pod) (remotecluster.Placement, error) {
	return c.selector().Place(pod, c.Placement)
}
