// SPDX-License-Identifier: Apache-2.0

package criconfig

import (
	corev1 "k8s.io/api/core/v1"
)

const (
	oomGuaranteed = -997
	oomBestEffort = 1000
	// nodeCritical is the priority of pods that the node itself needs.
	nodeCritical = 2_000_001_000
)

// oomScore returns the oom_score_adj of a container: when memory runs out, the kernel first kills containers above their request.
func oomScore(pod *corev1.Pod, c *corev1.Container, capacity int64) int64 {
	if p := pod.Spec.Priority; p != nil && *p >= nodeCritical {
		return oomGuaranteed
	}
	switch QOS(pod) {
	case corev1.PodQOSGuaranteed:
		return oomGuaranteed
	case corev1.PodQOSBestEffort:
		return oomBestEffort
	}
	if capacity <= 0 {
		return oomBestEffort - 1
	}
	share := memoryShare(pod)
	request := c.Resources.Requests.Memory().Value() + share
	if isSidecar(c) {
		request = max(request, leastRequest(pod)+share) // a sidecar must not be killed before containers that request less memory
	}
	return min(max(oomBestEffort-oomBestEffort*request/capacity, oomBestEffort+oomGuaranteed), oomBestEffort-1)
}

// memoryShare returns each container's share of the pod's memory request beyond the requests of its containers.
func memoryShare(pod *corev1.Pod) int64 {
	if pod.Spec.Resources == nil || pod.Spec.Resources.Requests.Memory().IsZero() {
		return 0
	}
	all, count := int64(0), int64(len(pod.Spec.Containers))
	for i := range pod.Spec.Containers {
		all += pod.Spec.Containers[i].Resources.Requests.Memory().Value()
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; isSidecar(c) {
			all += c.Resources.Requests.Memory().Value()
			count++
		}
	}
	return max(pod.Spec.Resources.Requests.Memory().Value()-all, 0) / max(count, 1)
}

func leastRequest(pod *corev1.Pod) int64 {
	least := int64(-1)
	for i := range pod.Spec.Containers {
		if m := pod.Spec.Containers[i].Resources.Requests.Memory().Value(); least < 0 || m < least {
			least = m
		}
	}
	return max(least, 0)
}

// QOS returns the class of a pod from its status, or else from the resources of its containers.
func QOS(pod *corev1.Pod) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	guaranteed, asks := true, false
	look := func(r corev1.ResourceRequirements) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := r.Requests[name], r.Limits[name]
			asks = asks || !request.IsZero() || !limit.IsZero()
			guaranteed = guaranteed && !limit.IsZero() && (request.IsZero() || request.Cmp(limit) == 0)
		}
	}
	if pod.Spec.Resources != nil {
		look(*pod.Spec.Resources)
	} else {
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				look(list[i].Resources)
			}
		}
	}
	switch {
	case !asks:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}
