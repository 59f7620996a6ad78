// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// patchType is that of patchOf.
const patchType = types.StrategicMergePatchType

// patchOf returns what makes labels, annotations and images of a remote pod as they should be; nil if they are. What others
// added there stays.
func patchOf(have, want *corev1.Pod) ([]byte, error) {
	var before sent
	_ = json.Unmarshal([]byte(have.Annotations[annotationSent]), &before) // somebody may have changed it: then nothing is removed
	wanted := want.DeepCopy().Annotations
	delete(wanted, annotationRestarts) // it says what was before the pod was made
	labels, annotations := changes(have.Labels, want.Labels, before.Labels), changes(have.Annotations, wanted, before.Annotations)
	type container struct {
		Name  string `json:"name"`
		Image string `json:"image"`
	}
	images := func(have, want []corev1.Container) (out []container) {
		for i := range want {
			if i < len(have) && have[i].Name == want[i].Name && have[i].Image != want[i].Image {
				out = append(out, container{want[i].Name, want[i].Image})
			}
		}
		return out
	}
	spec := map[string]any{}
	if list := images(have.Spec.InitContainers, want.Spec.InitContainers); list != nil {
		spec["initContainers"] = list
	}
	if list := images(have.Spec.Containers, want.Spec.Containers); list != nil {
		spec["containers"] = list
	}
	if len(labels)+len(annotations)+len(spec) == 0 {
		return nil, nil
	}
	patch := map[string]any{"metadata": map[string]any{"uid": have.UID, "labels": labels, "annotations": annotations}}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	return json.Marshal(patch)
}

// changes are the entries that differ, and nil for those that came from home and are gone there.
func changes(have, want map[string]string, came []string) map[string]any {
	out := map[string]any{}
	for k, v := range want {
		if has, ok := have[k]; !ok || has != v {
			out[k] = v
		}
	}
	for _, k := range came {
		if _, wanted := want[k]; !wanted {
			if _, has := have[k]; has {
				out[k] = nil
			}
		}
	}
	return out
}
