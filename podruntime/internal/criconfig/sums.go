// SPDX-License-Identifier: Apache-2.0

package criconfig

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// podSums returns the requests of all containers, and the sum of their limits, or no limit if one of them has none.
func podSums(pod *corev1.Pod) (requests, limits corev1.ResourceList) {
	requests = sumContainers(pod, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests })
	limits = sumContainers(pod, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits })
	if r := pod.Spec.Resources; r != nil {
		maps.Copy(requests, r.Requests)
		maps.Copy(limits, r.Limits)
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if own := pod.Spec.Resources; own != nil && hasLimit(own.Limits, name) {
			continue
		}
		if !allLimited(pod, name) {
			delete(limits, name)
		}
	}
	return requests, limits
}

// sumContainers adds up concurrent containers: all containers with the sidecars, or one init container with the sidecars
// before it.
func sumContainers(pod *corev1.Pod, of func(*corev1.Container) corev1.ResourceList) corev1.ResourceList {
	total, sidecars, peak := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range pod.Spec.Containers {
		addList(total, of(&pod.Spec.Containers[i]))
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if isSidecar(c) {
			addList(sidecars, of(c))
			raiseList(peak, sidecars)
			continue
		}
		with := maps.Clone(sidecars)
		addList(with, of(c))
		raiseList(peak, with)
	}
	addList(total, sidecars)
	raiseList(total, peak)
	return total
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func addList(to, more corev1.ResourceList) {
	for name, q := range more {
		s := to[name].DeepCopy()
		s.Add(q)
		to[name] = s
	}
}

func raiseList(to, other corev1.ResourceList) {
	for name, q := range other {
		if has, ok := to[name]; !ok || q.Cmp(has) > 0 {
			to[name] = q.DeepCopy()
		}
	}
}

func allLimited(pod *corev1.Pod, name corev1.ResourceName) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if q := list[i].Resources.Limits[name]; q.IsZero() {
				return false
			}
		}
	}
	return true
}

func hasLimit(limits corev1.ResourceList, name corev1.ResourceName) bool {
	q := limits[name]
	return !q.IsZero()
}
