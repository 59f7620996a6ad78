// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// size returns the job's request: whole CPUs and megabytes.
func (c Config) size(pod *corev1.Pod) (cpus, megabytes, gpus int64) {
	cpu := c.ask(pod, corev1.ResourceCPU)
	memory := c.ask(pod, corev1.ResourceMemory)
	memory = memory.DeepCopy()
	memory.Add(c.OverheadMemory) // the job also runs the program that runs the containers
	gpu := c.ask(pod, corev1.ResourceName(c.GPUResource))
	const mega = 1 << 20
	return max(1, (cpu.MilliValue()+999)/1000), max(1, (memory.Value()+mega-1)/mega), gpu.Value()
}

// ask returns the need of all containers together: concurrent containers add up, and an init container runs
// beside the sidecars before it.
func (c Config) ask(pod *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	of := func(k *corev1.Container) resource.Quantity {
		if q, ok := k.Resources.Limits[name]; ok {
			return q
		}
		return k.Resources.Requests[name]
	}
	var sum, sidecars, most resource.Quantity
	for i := range pod.Spec.InitContainers {
		k := &pod.Spec.InitContainers[i]
		if k.RestartPolicy != nil && *k.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars.Add(of(k))
			continue
		}
		q := of(k)
		q.Add(sidecars)
		if q.Cmp(most) > 0 {
			most = q
		}
	}
	for i := range pod.Spec.Containers {
		sum.Add(of(&pod.Spec.Containers[i]))
	}
	sum.Add(sidecars)
	if most.Cmp(sum) > 0 {
		sum = most
	}
	if sum.IsZero() {
		return c.DefaultResources[name]
	}
	if o, ok := pod.Spec.Overhead[name]; ok {
		sum.Add(o)
	}
	return sum
}
