// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Fields of a placement in an annotation.
const (
	FieldNodeSelector = "nodeSelector"
	FieldAffinity     = "affinity"
	FieldTolerations  = "tolerations"
)

var placementFields = []string{FieldNodeSelector, FieldAffinity, FieldTolerations}

// Placement selects nodes of the remote cluster for a pod. It replaces the pod's own constraints, which are for
// nodes of the home cluster.
type Placement struct {
	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
	Affinity     *corev1.Affinity    `json:"affinity,omitempty"`
	// OwnAffinity is true if Affinity is from the pod, and not from the configuration. It then refers to pods of
	// its home namespace.
	OwnAffinity bool `json:"-"`
}

// PlacementAnnotation is an annotation with which pods select nodes of the remote cluster. The value is JSON with
// the fields of a placement, in the format of a pod spec.
type PlacementAnnotation struct {
	Name string
	// Key is the key of the configuration with the allowed fields.
	Key     string
	Allowed []string
	// AddTolerations adds the tolerations of the pod to those of the configuration. Otherwise they replace them.
	AddTolerations bool
}

// CheckAllowed returns an error if Allowed has a field that a placement does not have.
func (a PlacementAnnotation) CheckAllowed() error {
	for _, field := range a.Allowed {
		if !slices.Contains(placementFields, field) {
			return fmt.Errorf("%s: %q: want %s, %s or %s", a.Key, field, FieldNodeSelector, FieldAffinity, FieldTolerations)
		}
	}
	return nil
}

// Place returns the placement of a pod. Its annotation overrides the fields of place, which is the placement of
// the configuration. Place refuses an annotation with a field that is unknown or not allowed.
func (a PlacementAnnotation) Place(pod *corev1.Pod, place Placement) (Placement, error) {
	text := pod.Annotations[a.Name]
	if text == "" {
		return place, nil
	}
	var own Placement
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&own); err != nil {
		return place, errdefs.InvalidInputf("annotation %s: %w", a.Name, err)
	}
	asks := map[string]bool{FieldNodeSelector: own.NodeSelector != nil, FieldAffinity: own.Affinity != nil, FieldTolerations: own.Tolerations != nil}
	for _, field := range placementFields {
		if asks[field] && !slices.Contains(a.Allowed, field) {
			return place, errdefs.InvalidInputf("annotation %s: pods may not set %s in the remote cluster: the configuration of the node does not name it under %s", a.Name, field, a.Key)
		}
	}
	if own.NodeSelector != nil {
		place.NodeSelector = own.NodeSelector
	}
	if own.Affinity != nil {
		place.Affinity, place.OwnAffinity = own.Affinity, true
	}
	switch {
	case a.AddTolerations:
		place.Tolerations = slices.Concat(place.Tolerations, own.Tolerations)
	case own.Tolerations != nil:
		place.Tolerations = own.Tolerations
	}
	return place, nil
}
