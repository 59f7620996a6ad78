// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"bytes"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// annotationSelector is the annotation of a pod that selects nodes of the lower cluster: JSON with the fields
// below, as in a pod.
const annotationSelector = "clusterSelector"

// Fields of the annotation.
const (
	fieldNodeSelector = "nodeSelector"
	fieldAffinity     = "affinity"
	fieldTolerations  = "tolerations"
)

// podPlacement returns where a pod may run in the lower cluster. The configuration supplies the fields that the pod
// leaves open. Tolerations of the pod are added to the configured tolerations, because nodes selected by the
// configuration may have taints unknown to the pod.
func (c Config) podPlacement(pod *corev1.Pod) (remotecluster.Placement, error) {
	place := c.Placement
	text := pod.Annotations[annotationSelector]
	if text == "" {
		return place, nil
	}
	var own remotecluster.Placement
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&own); err != nil {
		return place, errdefs.InvalidInputf("annotation %s: %w", annotationSelector, err)
	}
	for _, asked := range []struct {
		field string
		asks  bool
		take  func()
	}{
		{fieldNodeSelector, own.NodeSelector != nil, func() { place.NodeSelector = own.NodeSelector }},
		{fieldAffinity, own.Affinity != nil, func() { place.Affinity, place.OwnAffinity = own.Affinity, true }},
		{fieldTolerations, own.Tolerations != nil, func() { place.Tolerations = slices.Concat(place.Tolerations, own.Tolerations) }},
	} {
		if !asked.asks {
			continue
		}
		if !slices.Contains(c.ClusterSelector, asked.field) {
			return place, errdefs.InvalidInputf("annotation %s: pods may not set %s: the node's configuration does not name it under clusterSelector", annotationSelector, asked.field)
		}
		asked.take()
	}
	return place, nil
}
