// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
)

// size returns the job's request: whole CPUs and megabytes.
func (c Config) size(pod *corev1.Pod) (cpus, megabytes, gpus int64) {
	of := func(name corev1.ResourceName, value func(*resource.Quantity) int64) int64 {
		sum := sizing.Together(pod, func(k *corev1.Container) int64 {
			q, limited := k.Resources.Limits[name]
			if !limited {
				q = k.Resources.Requests[name]
			}
			return value(&q)
		})
		if sum == 0 {
			q := c.DefaultResources[name]
			return value(&q)
		}
		q := pod.Spec.Overhead[name]
		return sum + value(&q)
	}
	const mega = 1 << 20
	cpus = (of(corev1.ResourceCPU, (*resource.Quantity).MilliValue) + 999) / 1000
	memory := of(corev1.ResourceMemory, (*resource.Quantity).Value) + c.OverheadMemory.Value() // the job also runs the program that runs the containers
	return max(1, cpus), max(1, (memory+mega-1)/mega), of(corev1.ResourceName(c.GPUResource), (*resource.Quantity).Value)
}
