// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Change is what a patch brings about in a pod of the API server.
type Change struct {
	Status corev1.PodStatus
	// Labels and Annotations are set; a nil value removes.
	Labels, Annotations map[string]*string
	// DropConditions are removed: the provider had reported them and no longer does.
	DropConditions []corev1.PodConditionType
}

// PatchBody returns a strategic-merge patch that turns pod into what change
// says, and whether there is anything to do. It names the fields that differ
// only, and the UID, which makes the API server refuse it for another pod of
// the same name.
//
// Lists of conditions are merged by type, so those of other writers survive.
// Lists of addresses would be merged too; they are replaced.
func PatchBody(pod *corev1.Pod, change Change) ([]byte, bool) {
	status := statusDiff(&pod.Status, &change.Status)
	if c := conditionsDiff(pod.Status.Conditions, change.Status.Conditions, change.DropConditions); len(c) > 0 {
		status["conditions"] = c
	}
	meta := map[string]any{}
	if len(change.Labels) > 0 {
		meta["labels"] = change.Labels
	}
	if len(change.Annotations) > 0 {
		meta["annotations"] = change.Annotations
	}
	if len(status) == 0 && len(meta) == 0 {
		return nil, false
	}
	meta["uid"] = pod.UID
	body := map[string]any{"metadata": meta}
	if len(status) > 0 {
		body["status"] = status
	}
	b, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("status of pod %s/%s does not marshal: %v", pod.Namespace, pod.Name, err))
	}
	return b, true
}

// statusDiff returns the fields, except the conditions, that differ.
func statusDiff(old, want *corev1.PodStatus) map[string]any {
	d := map[string]any{}
	set := func(name string, old, want any) {
		switch {
		case equality.Semantic.DeepEqual(old, want):
		case reflect.ValueOf(want).IsZero():
			d[name] = nil
		default:
			d[name] = want
		}
	}
	set("phase", old.Phase, want.Phase)
	set("reason", old.Reason, want.Reason)
	set("message", old.Message, want.Message)
	set("hostIP", old.HostIP, want.HostIP)
	set("podIP", old.PodIP, want.PodIP)
	set("startTime", old.StartTime, want.StartTime)
	set("observedGeneration", old.ObservedGeneration, want.ObservedGeneration)
	set("initContainerStatuses", old.InitContainerStatuses, want.InitContainerStatuses)
	set("containerStatuses", old.ContainerStatuses, want.ContainerStatuses)
	set("ephemeralContainerStatuses", old.EphemeralContainerStatuses, want.EphemeralContainerStatuses)
	set("resize", old.Resize, want.Resize)
	set("resources", old.Resources, want.Resources)
	set("allocatedResources", old.AllocatedResources, want.AllocatedResources)
	if !equality.Semantic.DeepEqual(old.PodIPs, want.PodIPs) {
		d["podIPs"] = replaceList(want.PodIPs)
	}
	if !equality.Semantic.DeepEqual(old.HostIPs, want.HostIPs) {
		d["hostIPs"] = replaceList(want.HostIPs)
	}
	return d
}

// replaceList is a list for a strategic-merge patch that replaces instead of
// being merged.
func replaceList[T any](list []T) []any {
	out := []any{map[string]string{"$patch": "replace"}}
	for _, e := range list {
		out = append(out, e)
	}
	return out
}

func conditionsDiff(old, want []corev1.PodCondition, drop []corev1.PodConditionType) (d []any) {
	for i := range want {
		if before := condition(old, want[i].Type); before == nil || !equality.Semantic.DeepEqual(*before, want[i]) {
			d = append(d, want[i])
		}
	}
	for _, t := range drop {
		if condition(old, t) != nil {
			d = append(d, map[string]any{"type": t, "$patch": "delete"})
		}
	}
	return d
}

// MetadataDiff returns what the provider changed in the labels or annotations
// that it was handed: keys that it added or set to another value, and keys
// that it had added (own) and dropped again. What it merely lacks it may never
// have kept, and a value that it was handed at any time it only repeats, late.
// Keys that the API server's pod has already as wanted are left out.
func MetadataDiff(reported, api map[string]string, handed func(k, v string) bool, own map[string]bool) map[string]*string {
	d := map[string]*string{}
	for k, v := range reported {
		if now, ok := api[k]; (!ok || now != v) && !handed(k, v) {
			d[k] = &v
		}
	}
	for k := range own {
		if _, still := reported[k]; still {
			continue
		}
		if _, ok := api[k]; ok {
			d[k] = nil
		}
	}
	return d
}
