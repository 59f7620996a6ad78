// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// patchType is the type of the patches of patchOf.
const patchType = types.StrategicMergePatchType

// patchOf returns the patch that updates the labels, annotations and images of a remote pod, or nil if they are
// up to date. It keeps additions of other clients.
func patchOf(have, want *corev1.Pod) ([]byte, error) {
	labels, annotations := metadataChanges(have, want)
	type container struct {
		Name  string `json:"name"`
		Image string `json:"image"`
	}
	changed := changedImages(have, want)
	images := func(have []corev1.Container) (out []container) {
		for _, c := range have {
			if image, is := changed[c.Name]; is {
				out = append(out, container{c.Name, image})
			}
		}
		return out
	}
	spec := map[string]any{}
	if list := images(have.Spec.InitContainers); list != nil {
		spec["initContainers"] = list
	}
	if list := images(have.Spec.Containers); list != nil {
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

// changedImages returns the images that have changed in the home pod since they were sent, by container. It keeps
// images that a remote webhook has replaced, because a new image would restart the container. For a pod without a
// record of sent images, it returns all differing images.
func changedImages(have, want *corev1.Pod) map[string]string {
	was, is := sentOf(have).Images, sentOf(want).Images
	out, there := map[string]string{}, imagesOf(have)
	for name, image := range imagesOf(want) {
		before, known := was[name]
		if has, ok := there[name]; ok && (known && before != is[name] || !known && has != image) {
			out[name] = image
		}
	}
	return out
}

func imagesOf(pod *corev1.Pod) map[string]string {
	out := map[string]string{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		out[c.Name] = c.Image
	}
	return out
}

// metadataChanges returns the changes of labels and annotations.
func metadataChanges(have, want *corev1.Pod) (labels, annotations map[string]any) {
	before := sentOf(have) // without annotationSent, no key is removed
	wanted := maps.Clone(want.Annotations)
	delete(wanted, annotationRestarts) // set only at the creation
	delete(wanted, annotationHome)     // set only at the creation
	return mapChanges(have.Labels, want.Labels, before.Labels), mapChanges(have.Annotations, wanted, before.Annotations)
}

// mapChanges returns the differing entries, with nil for keys that were sent and have been removed since.
func mapChanges(have, want map[string]string, came []string) map[string]any {
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
