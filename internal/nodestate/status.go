// SPDX-License-Identifier: Apache-2.0

package nodestate

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const addressesField = "addresses"

// Keys of directives in a strategic-merge patch.
const (
	patchDirective = "$patch"
	patchReplace   = "replace"
	patchDelete    = "delete"
)

// StatusPatch returns the strategic-merge patch from the server's status to the values of want, or nil if there
// is nothing to write. It keeps the fields of other writers. With report it also writes if only the heartbeat
// times are old.
//
// Removals use the list of our fields. The same patch keeps the list in an annotation, so a crash never
// separates the two.
func StatusPatch(server *corev1.Node, want *corev1.NodeStatus, now metav1.Time, report bool) ([]byte, error) {
	ours := ownershipOf(want)
	text := ownershipText(ours)
	kept := server.Annotations[OwnedStatusAnnotation] == text
	owned := ours
	if !kept {
		owned = statusOwnership(server)
	}
	status := map[string]any{}
	diffResources(status, "capacity", server.Status.Capacity, want.Capacity, owned.Capacity)
	diffResources(status, "allocatable", server.Status.Allocatable, want.Allocatable, owned.Allocatable)
	diffAddresses(status, server.Status.Addresses, want.Addresses, owned.Fields)
	if have, wanted := plain(&server.Status), plain(want); !reflect.DeepEqual(have, wanted) {
		diffFields(status, plainFields(&have), plainFields(&wanted), owned.Fields)
	}
	changed := !kept || conditionsDiffer(server.Status.Conditions, want.Conditions, owned.Conditions)
	if !changed && len(status) == 0 && (!report || len(want.Conditions) == 0) {
		return nil, nil
	}
	if conditions := diffConditions(server.Status.Conditions, want.Conditions, owned.Conditions, now); len(conditions) > 0 {
		status["conditions"] = conditions
	}
	patch := map[string]any{"status": status}
	if annotations := ownershipChange(server, OwnedStatusAnnotation, text, LastAppliedStatusAnnotation); len(annotations) > 0 {
		patch["metadata"] = map[string]any{"annotations": annotations}
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode status patch: %w", err)
	}
	return body, nil
}

// ownershipChange returns the annotations with ours under key and without the key of an older version.
func ownershipChange(server *corev1.Node, key, ours, old string) map[string]any {
	annotations := map[string]any{}
	if server.Annotations[key] != ours {
		annotations[key] = ours
	}
	if _, ok := server.Annotations[old]; ok {
		annotations[old] = nil
	}
	return annotations
}

// conditionsDiffer reports whether a condition of ours differs in more than its heartbeat time.
func conditionsDiffer(server, want []corev1.NodeCondition, owned []string) bool {
	for i := range want {
		if c := &want[i]; differsFrom(findCondition(server, c.Type), c) {
			return true
		}
	}
	return slices.ContainsFunc(owned, func(key string) bool {
		t := corev1.NodeConditionType(key)
		return findCondition(want, t) == nil && findCondition(server, t) != nil
	})
}

func differsFrom(old, c *corev1.NodeCondition) bool {
	return old == nil || old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message
}

// findCondition returns the last condition of the type, or nil.
func findCondition(conditions []corev1.NodeCondition, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := len(conditions) - 1; i >= 0; i-- {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

// diffConditions returns the patch entries for all our conditions, because a write renews the heartbeat time of
// each.
func diffConditions(server, want []corev1.NodeCondition, owned []string, now metav1.Time) (entries []map[string]any) {
	types := map[corev1.NodeConditionType]bool{}
	for i := range want {
		types[want[i].Type] = true
	}
	for _, t := range slices.Sorted(maps.Keys(types)) {
		c, old := findCondition(want, t), findCondition(server, t)
		entry := map[string]any{"type": t, "lastHeartbeatTime": now}
		if differsFrom(old, c) {
			if old == nil {
				old = &corev1.NodeCondition{}
			}
			entry["status"], entry["reason"], entry["message"] = c.Status, c.Reason, c.Message
			entry["lastTransitionTime"] = TransitionTime(*old, *c, now)
		}
		entries = append(entries, entry)
	}
	for _, key := range owned {
		if t := corev1.NodeConditionType(key); findCondition(server, t) != nil && !types[t] {
			entries = append(entries, map[string]any{"type": key, patchDirective: patchDelete})
		}
	}
	return entries
}

// TransitionTime returns the time of the condition's last change of status: it changes only with the status,
// never moves backwards, and is the provider's if the provider has a better one.
func TransitionTime(old, c corev1.NodeCondition, now metav1.Time) metav1.Time {
	switch {
	case old.Type != "" && old.Status == c.Status && !old.LastTransitionTime.IsZero():
		return old.LastTransitionTime
	case c.LastTransitionTime.IsZero(), c.LastTransitionTime.Before(&old.LastTransitionTime):
		return now
	}
	return c.LastTransitionTime
}

// diffAddresses replaces the whole list: merging by the declared key, the type, would lose the second of two addresses of one type. A merge still
// groups the list by type, so the order only matters within a type.
func diffAddresses(patch map[string]any, have, want []corev1.NodeAddress, owned []string) {
	if slices.Equal(byType(have), byType(want)) || len(want) == 0 && !slices.Contains(owned, addressesField) {
		return
	}
	list := []any{map[string]any{patchDirective: patchReplace}}
	for _, address := range want {
		list = append(list, address)
	}
	patch[addressesField] = list
}

func byType(addresses []corev1.NodeAddress) []corev1.NodeAddress {
	return slices.SortedStableFunc(slices.Values(addresses), func(a, b corev1.NodeAddress) int {
		return strings.Compare(string(a.Type), string(b.Type))
	})
}

// diffResources adds the resources with different amounts to the patch. It compares amounts, not their formats.
func diffResources(patch map[string]any, field string, have, want corev1.ResourceList, owned []string) {
	changes := map[string]any{}
	for name, amount := range want {
		if old, ok := have[name]; !ok || old.Cmp(amount) != 0 {
			changes[string(name)] = amount
		}
	}
	for _, key := range owned {
		name := corev1.ResourceName(key)
		_, wanted := want[name]
		if _, exists := have[name]; exists && !wanted {
			changes[key] = nil
		}
	}
	if len(changes) > 0 {
		patch[field] = changes
	}
}

// diffFields adds the fields that differ to the patch. It replaces whole lists.
func diffFields(patch, have, want map[string]any, owned []string) {
	for key, value := range want {
		if old, ok := have[key]; !ok || !reflect.DeepEqual(old, value) {
			patch[key] = diffValue(old, value)
		}
	}
	for _, key := range owned {
		_, wanted := want[key]
		if _, exists := have[key]; exists && !wanted {
			patch[key] = nil
		}
	}
}

// diffValue returns the patch from have to a different want. If we own an object, we own all its fields.
func diffValue(have, want any) any {
	old, wasObject := have.(map[string]any)
	fresh, isObject := want.(map[string]any)
	if !wasObject || !isObject {
		return want
	}
	patch := map[string]any{}
	diffFields(patch, old, fresh, sortedKeys(old))
	return patch
}

// plain returns the fields of the status that have no special rules.
func plain(status *corev1.NodeStatus) corev1.NodeStatus {
	plain := *status
	plain.Capacity, plain.Allocatable, plain.Conditions, plain.Addresses = nil, nil, nil, nil
	return plain
}

// plainFields returns the fields of a plain status as JSON, without zero fields, because they were not set.
func plainFields(plain *corev1.NodeStatus) map[string]any {
	body, err := json.Marshal(plain)
	if err != nil {
		panic(fmt.Sprintf("node status cannot be encoded: %v", err)) // all remaining fields have plain types
	}
	fields := map[string]any{}
	if err := json.Unmarshal(body, &fields); err != nil {
		panic(fmt.Sprintf("node status cannot be decoded: %v", err))
	}
	maps.DeleteFunc(fields, func(_ string, value any) bool { return isZeroJSON(value) })
	return fields
}

// fieldNames returns the keys of plainFields, sorted, without JSON, because it is called for each status update of each node.
func fieldNames(plain *corev1.NodeStatus) (names []string) {
	v := reflect.ValueOf(plain).Elem()
	for i := range v.NumField() {
		if !isZero(v.Field(i)) {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// isZero reports whether a value is unset, like isZeroJSON for its JSON.
func isZero(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil() || isZero(v.Elem())
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		for i := range v.NumField() {
			if !isZero(v.Field(i)) {
				return false
			}
		}
		return true
	}
	return v.IsZero()
}

func isZeroJSON(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if !isZeroJSON(inner) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return value == nil || reflect.ValueOf(value).IsZero()
}
