// SPDX-License-Identifier: Apache-2.0

package admiralty

import (
	"bytes"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// AnnotationConstraints is the annotation in which the agent keeps the node constraints of an elected pod. They
// are about nodes of the target cluster. The value is JSON with the fields below, as in a pod.
const AnnotationConstraints = "admiralty.virtual-kubelet.io/constraints"

// Fields of the annotation.
const (
	fieldNodeSelector = "nodeSelector"
	fieldAffinity     = "affinity"
	fieldTolerations  = "tolerations"
)

// podPlacement returns where a pod may run in the target cluster.
func (c Config) podPlacement(pod *corev1.Pod) (remotecluster.Placement, error) {
	return Place(pod, c.Placement, c.Constraints)
}

// Place returns where a pod may run in a target cluster. The annotation of the pod overrides the fields of
// place. The annotation may only contain the allowed fields.
func Place(pod *corev1.Pod, place remotecluster.Placement, allowed []string) (remotecluster.Placement, error) {
	text := pod.Annotations[AnnotationConstraints]
	if text == "" {
		return place, nil
	}
	var own remotecluster.Placement
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&own); err != nil {
		return place, errdefs.InvalidInputf("annotation %s: %w", AnnotationConstraints, err)
	}
	for _, asked := range []struct {
		field string
		asks  bool
		take  func()
	}{
		{fieldNodeSelector, own.NodeSelector != nil, func() { place.NodeSelector = own.NodeSelector }},
		{fieldAffinity, own.Affinity != nil, func() { place.Affinity, place.OwnAffinity = own.Affinity, true }},
		{fieldTolerations, own.Tolerations != nil, func() { place.Tolerations = own.Tolerations }},
	} {
		if !asked.asks {
			continue
		}
		if !slices.Contains(allowed, asked.field) {
			return place, errdefs.InvalidInputf("annotation %s: pods may not set %s in the target cluster: the configuration of the node does not name it under constraints", AnnotationConstraints, asked.field)
		}
		asked.take()
	}
	return place, nil
}
