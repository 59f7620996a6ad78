// SPDX-License-Identifier: Apache-2.0

// Package nodestate computes the patches of the Node object for the provider's wanted state. Its functions are pure.
//
// The guarantee: fields of other writers stay. Our fields are removed when the provider no longer sets them, even after a restart.
//
// Note: the Node object itself records our fields, in annotations that the same patch updates.
package nodestate

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// The node object records our fields, so that a restarted process still removes fields no longer set by its
// provider.
const (
	OwnedMetadataAnnotation = "virtual-kubelet.io/owned-metadata"
	OwnedStatusAnnotation   = "virtual-kubelet.io/owned-status"

	// Older versions kept whole copies of their writes. This version reads and removes them once.
	LastAppliedMetadataAnnotation = "virtual-kubelet.io/last-applied-object-meta"
	LastAppliedStatusAnnotation   = "virtual-kubelet.io/last-applied-node-status"
)

func isOwnershipAnnotation(key string) bool {
	switch key {
	case OwnedMetadataAnnotation, OwnedStatusAnnotation, LastAppliedMetadataAnnotation, LastAppliedStatusAnnotation:
		return true
	}
	return false
}

// ownedMetadata names our labels and annotations.
type ownedMetadata struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// ownedStatus names our parts of the status.
type ownedStatus struct {
	Conditions  []string `json:"conditions,omitempty"`
	Capacity    []string `json:"capacity,omitempty"`
	Allocatable []string `json:"allocatable,omitempty"`
	// Fields are the other fields of the status, by their JSON names.
	Fields []string `json:"fields,omitempty"`
}

// metadataOwnership reads our labels and annotations from the node. An unreadable record counts as empty, so no fields are removed.
func metadataOwnership(node *corev1.Node) ownedMetadata {
	var owned ownedMetadata
	if text, ok := node.Annotations[OwnedMetadataAnnotation]; ok {
		if json.Unmarshal([]byte(text), &owned) != nil {
			return ownedMetadata{}
		}
		return owned
	}
	var applied struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	}
	if json.Unmarshal([]byte(node.Annotations[LastAppliedMetadataAnnotation]), &applied) != nil {
		return ownedMetadata{}
	}
	return ownedMetadata{Labels: sortedKeys(applied.Labels), Annotations: sortedKeys(applied.Annotations)}
}

// statusOwnership reads our parts of the status from the node, like metadataOwnership.
func statusOwnership(node *corev1.Node) ownedStatus {
	var owned ownedStatus
	if text, ok := node.Annotations[OwnedStatusAnnotation]; ok {
		if json.Unmarshal([]byte(text), &owned) != nil {
			return ownedStatus{}
		}
		return owned
	}
	var applied corev1.NodeStatus
	if json.Unmarshal([]byte(node.Annotations[LastAppliedStatusAnnotation]), &applied) != nil {
		return ownedStatus{}
	}
	return ownershipOf(&applied)
}

// ownershipOf returns our parts of the status after a write of status.
func ownershipOf(status *corev1.NodeStatus) ownedStatus {
	rest := plain(status)
	owned := ownedStatus{
		Capacity:    sortedKeys(status.Capacity),
		Allocatable: sortedKeys(status.Allocatable),
		Fields:      fieldNames(&rest),
	}
	for i := range status.Conditions {
		owned.Conditions = append(owned.Conditions, string(status.Conditions[i].Type))
	}
	slices.Sort(owned.Conditions)
	owned.Conditions = slices.Compact(owned.Conditions)
	if len(status.Addresses) > 0 {
		owned.Fields = append(owned.Fields, addressesField)
	}
	return owned
}

// ownershipText returns the text of an ownership annotation.
func ownershipText[T ownedMetadata | ownedStatus](owned T) string {
	text, err := json.Marshal(owned)
	if err != nil {
		panic(err) // Strings and slices of strings can always be encoded.
	}
	return string(text)
}

func sortedKeys[K ~string, V any](m map[K]V) []string {
	keys := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		keys = append(keys, string(key))
	}
	return keys
}
