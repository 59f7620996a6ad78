// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/sizing"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
)

// sizes are the pairs of CPU and memory in all regions:
// https://www.alibabacloud.com/help/en/eci/user-guide/specify-the-number-of-vcpus-and-memory-size-to-create-an-elastic-container-instance
// of 2026-06-20. ECI accepts other pairs too, and provides the next larger size.
var sizes = []sizing.Row{
	sizing.At(250, sizing.One(512*sizing.Mi), sizing.One(1*sizing.Gi)),
	sizing.At(500, gib(1, 2)...),
	sizing.At(1000, gib(2, 4, 8)...),
	sizing.At(2000, gib(1, 2, 4, 8, 16)...),
	sizing.At(4000, gib(2, 4, 8, 16, 32)...),
	sizing.At(8000, gib(4, 8, 16, 32, 64)...),
	sizing.At(12000, gib(12, 24, 48, 96)...),
	sizing.At(16000, gib(16, 32, 64, 128)...),
	sizing.At(24000, gib(24, 48, 96, 192)...),
	sizing.At(32000, gib(32, 64, 128, 256)...),
	sizing.At(52000, gib(96, 192, 384)...),
	sizing.At(64000, gib(128, 256, 512)...),
}

func gib(all ...int64) (steps []sizing.Steps) {
	for _, n := range all {
		steps = append(steps, sizing.One(n*sizing.Gi))
	}
	return steps
}

// sizeOf returns the size to buy for a pod. unasked is the size of a pod without requests.
func sizeOf(pod *corev1.Pod, unasked corev1.ResourceList) (sizing.Size, error) {
	if err := service.Containers(pod, checkResources); err != nil {
		return sizing.Size{}, err
	}
	asked, whole := sizing.OfPod(pod, asks), sizing.Of(unasked)
	asked = sizing.Size{MilliCPU: cmp.Or(asked.MilliCPU, whole.MilliCPU), Memory: cmp.Or(asked.Memory, whole.Memory)}
	bought, ok := sizing.Fit(sizes, asked)
	if !ok {
		return sizing.Size{}, errdefs.InvalidInputf("the pod needs %s: ECI has no size so large, or none of such proportions", asked)
	}
	return bought, nil
}

// checkResources refuses unsupported resources.
func checkResources(c *corev1.Container, _ bool, at *field.Path) error {
	return podspec.CheckResources(c, at, "groups of ECI have cpu, memory, ephemeral-storage and nvidia.com/gpu",
		corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, resourceGPU)
}

// resourceGPU is the resource of GPUs. GPUs come with an instance type.
const resourceGPU corev1.ResourceName = "nvidia.com/gpu"

// gpusOf returns the number of GPUs of a container. Limit and request are equal.
func gpusOf(c *corev1.Container) int64 {
	q := c.Resources.Limits[resourceGPU]
	return q.Value()
}

// instanceTypes gives a group with GPUs the configured instance types, unless its pod names others. ECI takes
// the size of the type: https://help.aliyun.com/en/eci/user-guide/create-an-instance-by-specifying-the-gpu-type,
// read on 2026-11-28.
func (c Config) instanceTypes(pod *corev1.Pod, out *createRequest) error {
	var first *field.Path
	_ = service.Containers(pod, func(k *corev1.Container, _ bool, at *field.Path) error { // the callback returns no error
		if first == nil && gpusOf(k) > 0 {
			first = at.Child("resources", "limits").Key(string(resourceGPU))
		}
		return nil
	})
	if first == nil {
		return nil
	}
	if out.InstanceType == "" {
		out.InstanceType, out.CPU, out.Memory = strings.Join(c.GPUInstanceTypes, ","), 0, 0
	}
	if !strings.HasPrefix(out.InstanceType, "ecs.") {
		return errdefs.InvalidInputf("%s: ECI has GPUs with an instance type: name one, such as ecs.gn6i-c4g1.xlarge, in gpuInstanceTypes of this node's configuration or in the annotation %suse-specs", first, annotationPrefix)
	}
	return nil
}

// asks returns the size of a container: its limits, or its requests where it has no limit.
func asks(c *corev1.Container) sizing.Size {
	requests, limits := sizing.Of(c.Resources.Requests), sizing.Of(c.Resources.Limits)
	return sizing.Size{MilliCPU: cmp.Or(limits.MilliCPU, requests.MilliCPU), Memory: cmp.Or(limits.Memory, requests.Memory)}
}

// storageGiven is the free storage of a group, in GiB:
// https://www.alibabacloud.com/help/en/eci/user-guide/increase-the-capacity-of-the-temporary-storage-space of
// 2025-07-02.
const storageGiven = 30

// extraStorage returns the GiB of storage to buy for a pod: its request minus the storage of every group.
func extraStorage(pod *corev1.Pod) int64 {
	return max(0, (storage.Requested(pod)+sizing.Gi-1)/sizing.Gi-storageGiven)
}

// cpus and gibs convert a size to the units of ECI.
func cpus(s sizing.Size) float64 { return float64(s.MilliCPU) / 1000 }

func gibs(s sizing.Size) float64 { return float64(s.Memory) / float64(sizing.Gi) }
