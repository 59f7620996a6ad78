// SPDX-License-Identifier: Apache-2.0

package nodestate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kubeletapis "k8s.io/kubelet/pkg/apis"
)

// MetadataPatch returns the JSON merge patch from server to the labels and annotations of want. It removes our
// labels and annotations missing in want, and keeps those of other writers. It returns nil if there is nothing
// to write. It neither sets nor removes labels for which skip is true; skip may be nil.
func MetadataPatch(server, want *corev1.Node, skip func(label string) bool) ([]byte, error) {
	if skip == nil {
		skip = func(string) bool { return false }
	}
	owned := metadataOwnership(server)
	labels := maps.Clone(want.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return skip(key) })
	annotations := maps.Clone(want.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return isOwnershipAnnotation(key) })

	now := ownedMetadata{Labels: sortedKeys(labels), Annotations: sortedKeys(annotations)}
	// A skipped label of ours stays in the record, so that a later write can remove it.
	for _, key := range owned.Labels {
		if _, exists := server.Labels[key]; exists && skip(key) {
			now.Labels = append(now.Labels, key)
		}
	}
	slices.Sort(now.Labels)

	labelChanges := diffStrings(server.Labels, labels, slices.DeleteFunc(owned.Labels, skip))
	annotationChanges := diffStrings(server.Annotations, annotations, owned.Annotations)
	maps.Copy(annotationChanges, ownershipChange(server, OwnedMetadataAnnotation, ownershipText(now), LastAppliedMetadataAnnotation))

	metadata := map[string]any{}
	if len(labelChanges) > 0 {
		metadata["labels"] = labelChanges
	}
	if len(annotationChanges) > 0 {
		metadata["annotations"] = annotationChanges
	}
	if len(metadata) == 0 {
		return nil, nil
	}
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, fmt.Errorf("encode metadata patch: %w", err)
	}
	return body, nil
}

func diffStrings(have, want map[string]string, owned []string) map[string]any {
	changes := map[string]any{}
	for key, value := range want {
		if old, ok := have[key]; !ok || old != value {
			changes[key] = value
		}
	}
	for _, key := range owned {
		_, wanted := want[key]
		if _, exists := have[key]; exists && !wanted {
			changes[key] = nil
		}
	}
	return changes
}

// IsRestrictedLabel reports whether the NodeRestriction admission plugin forbids a
// node identity to set the label on its own node.
func IsRestrictedLabel(key string) bool {
	namespace, _, found := strings.Cut(key, "/")
	if !found || kubeletapis.IsKubeletLabel(key) {
		return false
	}
	for _, reserved := range []string{"kubernetes.io", "k8s.io"} {
		if namespace == reserved || strings.HasSuffix(namespace, "."+reserved) {
			return true
		}
	}
	return false
}

// New returns the node for its creation: all fields of want, the record of our fields, and no field assigned by the API server.
func New(want *corev1.Node, status *corev1.NodeStatus, skip func(label string) bool) *corev1.Node {
	node := want.DeepCopy()
	node.Status = *status
	node.ResourceVersion, node.UID, node.ManagedFields = "", "", nil
	maps.DeleteFunc(node.Annotations, func(key, _ string) bool { return isOwnershipAnnotation(key) })
	if skip != nil {
		maps.DeleteFunc(node.Labels, func(key, _ string) bool { return skip(key) })
	}
	metadata := ownershipText(ownedMetadata{Labels: sortedKeys(node.Labels), Annotations: sortedKeys(node.Annotations)})
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[OwnedMetadataAnnotation] = metadata
	node.Annotations[OwnedStatusAnnotation] = ownershipText(ownershipOf(status))
	return node
}
