// SPDX-License-Identifier: Apache-2.0

package criconfig

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// skeletonSpec returns the parts of a spec that are needed to end a pod. They contain no secrets.
func skeletonSpec(pod *corev1.Pod) *corev1.PodSpec {
	return &corev1.PodSpec{
		RestartPolicy:                 pod.Spec.RestartPolicy,
		TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds,
		HostNetwork:                   pod.Spec.HostNetwork,
		InitContainers:                skeletonContainers(pod.Spec.InitContainers),
		Containers:                    skeletonContainers(pod.Spec.Containers),
	}
}

func skeletonContainers(list []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for i := range list {
		c := &list[i]
		out = append(out, corev1.Container{
			Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy, RestartPolicyRules: c.RestartPolicyRules,
			TerminationMessagePath: c.TerminationMessagePath, TerminationMessagePolicy: c.TerminationMessagePolicy,
		})
	}
	return out
}

// podAnnotations returns the pod's own annotations, and the input of Skeleton.
func podAnnotations(pod *corev1.Pod) map[string]string {
	a := maps.Clone(pod.Annotations)
	if a == nil {
		a = map[string]string{}
	}
	annotateJSON(a, AnnotationSpec, skeletonSpec(pod))
	return a
}

// Skeleton returns the pod that the annotations of a sandbox describe: enough to report its state, and to end it. It has no node name, which
// distinguishes it from the pod of the API server.
func Skeleton(labels, annotations map[string]string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: labels[LabelPodName], Namespace: labels[LabelPodNamespace], UID: types.UID(labels[LabelPodUID]),
		Labels: maps.Clone(labels), Annotations: maps.Clone(annotations),
	}}
	maps.DeleteFunc(pod.Labels, func(key, _ string) bool {
		return key == LabelPodName || key == LabelPodNamespace || key == LabelPodUID || key == LabelNode
	})
	// Annotations of the runtime itself do not belong to the pod.
	maps.DeleteFunc(pod.Annotations, func(key, _ string) bool {
		return key == AnnotationSpec || strings.HasPrefix(key, "io.kubernetes.cri")
	})
	_ = json.Unmarshal([]byte(annotations[AnnotationSpec]), &pod.Spec) // missing fields stay empty
	return pod
}

// Flesh adds the data of one container to a skeleton.
func Flesh(pod *corev1.Pod, labels, annotations map[string]string, image string) {
	name := labels[LabelContainerName]
	c := containerNamed(pod, name)
	known := slices.ContainsFunc(pod.Spec.EphemeralContainers, func(e corev1.EphemeralContainer) bool { return e.Name == name })
	switch {
	case known:
		return
	case c == nil:
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: image},
		})
		return
	}
	if raw := annotations[AnnotationPreStop]; raw != "" {
		hook := &corev1.LifecycleHandler{}
		if json.Unmarshal([]byte(raw), hook) == nil {
			c.Lifecycle = &corev1.Lifecycle{PreStop: hook}
		}
	}
	if raw := annotations[AnnotationContainerPorts]; raw != "" {
		_ = json.Unmarshal([]byte(raw), &c.Ports) // as above
	}
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		if grace, err := strconv.ParseInt(annotations[AnnotationGracePeriod], 10, 64); err == nil {
			pod.Spec.TerminationGracePeriodSeconds = &grace
		}
	}
}

// containerNamed returns the regular or init container with that name, or nil.
func containerNamed(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// Meta has the labels and annotations of a sandbox or container.
type Meta struct{ Labels, Annotations map[string]string }
