// SPDX-License-Identifier: Apache-2.0

// Package storage computes the ephemeral storage of nodes whose backend does not: a service that gives each pod a fixed amount, or a plugin that does
// not report it.
//
// The promise: such a node offers ephemeral-storage, so that the scheduler binds pods that request it.
//
// Note: the sum over all pods is only a bound for the scheduler. The mapping decides whether one pod may request that much.
package storage

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Offer returns capacity with perPod of ephemeral-storage for each of its pods. A capacity with
// ephemeral-storage stays unchanged.
func Offer(capacity corev1.ResourceList, perPod resource.Quantity) corev1.ResourceList {
	if _, said := capacity[corev1.ResourceEphemeralStorage]; said || capacity == nil {
		return capacity
	}
	out := capacity.DeepCopy()
	all := perPod.DeepCopy()
	if !all.Mul(out.Pods().Value()) {
		all = *resource.NewQuantity(1<<60, resource.BinarySI)
	}
	out[corev1.ResourceEphemeralStorage] = all
	return out
}

// Requested returns the ephemeral-storage that the scheduler counts for a pod, in bytes.
func Requested(pod *corev1.Pod) int64 {
	q := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})[corev1.ResourceEphemeralStorage]
	return q.Value()
}

// Check refuses a pod that requests more than the service gives to one pod.
func Check(pod *corev1.Pod, perPod resource.Quantity, service string) error {
	if asked := Requested(pod); asked > perPod.Value() {
		return errdefs.InvalidInput(fmt.Sprintf("spec.containers: the pod requests %s of ephemeral-storage: %s gives %s to each: request less, or mount a volume of the service",
			resource.NewQuantity(asked, resource.BinarySI), service, perPod.String()))
	}
	return nil
}
