// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// changeOwner updates the owner object of a pod. The controller copies changed labels and annotations to the pod,
// but not images, so changeOwner also updates the pod.
func (o *owners) changeOwner(ctx context.Context, there, want *corev1.Pod) error {
	owner := o.cache.findOwner(there.Namespace, there.Name)
	if owner == nil {
		var err error
		if owner, err = o.get(ctx, there.Namespace, there.Name); err != nil {
			return err
		}
	}
	labels, annotations := metadataChanges(owner, want)
	was, is := sentOf(owner), sentOf(want)
	images := changedImages(owner, want)
	if len(images) > 0 { // the new images are recorded after the pod has been updated
		is.Images = was.Images
		if annotations[annotationSent] = is.jsonText(); is.jsonText() == owner.Annotations[annotationSent] {
			delete(annotations, annotationSent)
		}
	}
	spec := map[string]any{}
	for field, list := range map[string][]corev1.Container{"initContainers": owner.Spec.InitContainers, "containers": owner.Spec.Containers} {
		if all, differ := withImages(list, images); differ {
			spec[field] = all // the complete list, because a merge patch cannot change single elements
		}
	}
	if err := o.patchOwner(ctx, owner, labels, annotations, spec); err != nil {
		return err
	}
	pod := o.cache.findPod(there.Namespace, there.Name)
	if pod == nil {
		return nil
	}
	next := want.DeepCopy()
	next.ObjectMeta = pod.ObjectMeta
	if was.Images != nil { // the pod has the record of images from its creation, and nothing updates it
		next = pod.DeepCopy()
		next.Spec.InitContainers, _ = withImages(pod.Spec.InitContainers, images)
		next.Spec.Containers, _ = withImages(pod.Spec.Containers, images)
	}
	have := pod.DeepCopy()
	delete(have.Annotations, annotationSent)
	delete(next.Annotations, annotationSent)
	patch, err := patchOf(have, next)
	if err == nil && patch != nil {
		_, err = o.cache.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, patchType, patch, metav1.PatchOptions{})
	}
	if err != nil || len(images) == 0 {
		return err
	}
	return o.patchOwner(ctx, owner, nil, map[string]any{annotationSent: sentOf(want).jsonText()}, nil)
}

// patchOwner changes labels, annotations and pod spec fields of an owner object, if there are changes.
func (o *owners) patchOwner(ctx context.Context, owner *corev1.Pod, labels, annotations, spec map[string]any) error {
	if len(labels)+len(annotations)+len(spec) == 0 {
		return nil
	}
	meta := map[string]any{"uid": owner.UID}
	for field, changes := range map[string]map[string]any{"labels": labels, "annotations": annotations} {
		if len(changes) > 0 {
			meta[field] = changes
		}
	}
	patch := map[string]any{"metadata": meta}
	if len(spec) > 0 {
		var change any = spec
		for _, field := range slices.Backward(o.kind.Spec) {
			change = map[string]any{field: change}
		}
		maps.Copy(patch, change.(map[string]any))
	}
	text, err := json.Marshal(patch)
	if err == nil {
		_, err = o.resourceClient(owner.Namespace).Patch(ctx, owner.Name, types.MergePatchType, text, metav1.PatchOptions{})
	}
	return err
}

// withImages returns containers with the images, by container, and whether any image changed.
func withImages(have []corev1.Container, images map[string]string) (out []corev1.Container, differ bool) {
	out = slices.Clone(have)
	for i := range out {
		if image, is := images[out[i].Name]; is && image != out[i].Image {
			out[i].Image, differ = image, true
		}
	}
	return out, differ
}

// whereRemade reduces the rights if a controller recreates lost pods. The controller also stops pods, so other
// rights on pods are useful, but not needed. Other components manage the namespaces.
func (c Config) whereRemade(all []Right) []Right {
	if c.Owner == nil || !c.Owner.Remakes {
		return all
	}
	group, kind := c.Owner.Resource.Group, c.Owner.Resource.Resource
	needed := []Right{
		{Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}, Group: group, Resources: []string{kind}},
		{Verbs: []string{"get", "list", "watch"}, Resources: []string{"pods"}},
	}
	for _, right := range all {
		switch right.Resources[0] {
		case kind, "pods", "namespaces":
		case "events":
			if c.Recorder != nil {
				needed = append(needed, right)
			}
		default:
			needed = append(needed, right)
		}
	}
	return needed
}
