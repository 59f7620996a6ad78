// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Change is the change that a patch makes to a pod in the API server.
type Change struct {
	Status corev1.PodStatus
	// Labels and Annotations are set; a nil value removes the key.
	Labels, Annotations map[string]*string
	// DropConditions are removed: the provider had reported them and no longer does.
	DropConditions []corev1.PodConditionType
}

// PatchBody returns a strategic-merge patch that applies change to pod, and reports whether there is anything to patch. The patch contains
// only the fields that differ, and the UID. Because of the UID, the API server refuses the patch for another pod of the same name.
//
// Lists of conditions are merged by type, so conditions of other writers survive. Lists of addresses would be
// merged too; therefore the patch replaces them.
func PatchBody(pod *corev1.Pod, change Change) ([]byte, bool) {
	status := statusDiff(&pod.Status, &change.Status, conditionsDiff(pod.Status.Conditions, change.Status.Conditions, change.DropConditions))
	if !status.any() && len(change.Labels) == 0 && len(change.Annotations) == 0 {
		return nil, false
	}
	var meta object
	if len(change.Annotations) > 0 {
		meta.set("annotations", change.Annotations)
	}
	if len(change.Labels) > 0 {
		meta.set("labels", change.Labels)
	}
	meta.text("uid", string(pod.UID))
	var body object
	body.raw("metadata", meta.end())
	if status.any() {
		body.raw("status", status.end())
	}
	return body.end(), true
}

// statusDiff returns the fields that differ, and the given conditions. The fields are ordered by name, as
// encoding/json would write a map.
func statusDiff(old, want *corev1.PodStatus, conditions []any) *object {
	d := &object{}
	if !sameMap(old.AllocatedResources, want.AllocatedResources) {
		d.setOrDrop("allocatedResources", want.AllocatedResources, len(want.AllocatedResources) == 0)
	}
	if len(conditions) > 0 {
		d.set("conditions", conditions)
	}
	containers := func(name string, old, want []corev1.ContainerStatus) {
		if !sameContainers(old, want) {
			d.setOrDrop(name, want, len(want) == 0)
		}
	}
	text := func(name, old, want string) {
		switch {
		case old == want:
		case want == "":
			d.set(name, nil)
		default:
			d.text(name, want)
		}
	}
	containers("containerStatuses", old.ContainerStatuses, want.ContainerStatuses)
	containers("ephemeralContainerStatuses", old.EphemeralContainerStatuses, want.EphemeralContainerStatuses)
	text("hostIP", old.HostIP, want.HostIP)
	if !slices.Equal(old.HostIPs, want.HostIPs) {
		d.set("hostIPs", replaceList(want.HostIPs))
	}
	containers("initContainerStatuses", old.InitContainerStatuses, want.InitContainerStatuses)
	text("message", old.Message, want.Message)
	if old.ObservedGeneration != want.ObservedGeneration {
		d.setOrDrop("observedGeneration", want.ObservedGeneration, want.ObservedGeneration == 0)
	}
	text("phase", string(old.Phase), string(want.Phase))
	text("podIP", old.PodIP, want.PodIP)
	if !slices.Equal(old.PodIPs, want.PodIPs) {
		d.set("podIPs", replaceList(want.PodIPs))
	}
	text("reason", old.Reason, want.Reason)
	text("resize", string(old.Resize), string(want.Resize))
	if !samePointer(old.Resources, want.Resources) {
		d.set("resources", want.Resources)
	}
	if !old.StartTime.Equal(want.StartTime) {
		d.set("startTime", want.StartTime)
	}
	return d
}

// replaceList returns a list for a strategic-merge patch that replaces the old list instead of merging.
func replaceList[T any](list []T) []any {
	out := []any{map[string]string{"$patch": "replace"}}
	for _, e := range list {
		out = append(out, e)
	}
	return out
}

func conditionsDiff(old, want []corev1.PodCondition, drop []corev1.PodConditionType) (d []any) {
	for i := range want {
		switch before := condition(old, want[i].Type); {
		case before == nil:
			d = append(d, &want[i])
		case !sameCondition(before, &want[i]):
			d = append(d, conditionDiff(before, &want[i]))
		}
	}
	for _, t := range drop {
		if condition(old, t) != nil {
			d = append(d, map[string]any{"type": t, "$patch": "delete"})
		}
	}
	return d
}

// conditionDiff returns a condition for a merge with the earlier one. Fields that only the earlier condition sets are set to null, so that
// the merge removes them.
func conditionDiff(before, want *corev1.PodCondition) any {
	switch {
	case before.Reason != "" && want.Reason == "", before.Message != "" && want.Message == "",
		before.ObservedGeneration != 0 && want.ObservedGeneration == 0:
		return &wholeCondition{*want, orNull(want.Reason), orNull(want.Message), orNull(want.ObservedGeneration)}
	}
	return want
}

// wholeCondition is a condition whose JSON also has its empty fields.
type wholeCondition struct {
	corev1.PodCondition
	Reason             *string `json:"reason"`
	Message            *string `json:"message"`
	ObservedGeneration *int64  `json:"observedGeneration"`
}

func orNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}
