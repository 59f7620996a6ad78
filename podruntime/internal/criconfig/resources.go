// SPDX-License-Identifier: Apache-2.0

package criconfig

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// period is the CPU accounting period in µs.
	period = 100_000
	// minQuota is the least quota of the kernel; minShares and maxShares are the range of a cgroup.
	minQuota  = 1_000
	minShares = 2
	maxShares = 262_144
)

// Resources returns the limits of a container.
func (s Settings) Resources(pod *corev1.Pod, c *corev1.Container) *runtimeapi.LinuxContainerResources {
	limits := effectiveLimits(pod, c)
	request, has := c.Resources.Requests[corev1.ResourceCPU]
	if !has {
		request = limits[corev1.ResourceCPU]
	}
	out := s.linuxResources(request, limits[corev1.ResourceCPU], limits[corev1.ResourceMemory])
	out.OomScoreAdj = max(oomScore(pod, c, s.MemoryCapacity), s.OOMScoreFloor)
	out.HugepageLimits = s.hugePages(limits)
	if s.SwapLimits {
		out.MemorySwapLimitInBytes = out.MemoryLimitInBytes
	}
	if s.CgroupV2 {
		out.Unified["memory.high"] = "max"
	}
	return out
}

// Update returns the new limits of a running container.
func (s Settings) Update(pod *corev1.Pod, c *corev1.Container) *runtimeapi.ContainerResources {
	return &runtimeapi.ContainerResources{Linux: s.Resources(pod, c)}
}

// effectiveLimits returns the limits of the container, or the pod's limits where the container has none.
func effectiveLimits(pod *corev1.Pod, c *corev1.Container) corev1.ResourceList {
	limits := corev1.ResourceList{}
	if r := pod.Spec.Resources; r != nil {
		for name, q := range r.Limits {
			limits[name] = q
		}
	}
	for name, q := range c.Resources.Limits {
		if !q.IsZero() || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			limits[name] = q
		}
	}
	return limits
}

// linuxResources returns the limits of a cgroup. A CPU limit of 0 is none.
func (s Settings) linuxResources(cpuRequest, cpuLimit, memoryLimit resource.Quantity) *runtimeapi.LinuxContainerResources {
	out := &runtimeapi.LinuxContainerResources{
		CpuPeriod:          period,
		CpuShares:          min(max(cpuRequest.MilliValue()*1024/1000, minShares), maxShares),
		MemoryLimitInBytes: memoryLimit.Value(),
	}
	if milli := cpuLimit.MilliValue(); milli > 0 {
		out.CpuQuota = max(milli*period/1000, minQuota)
	}
	if s.CgroupV2 {
		out.Unified = map[string]string{"memory.oom.group": "1"}
	}
	return out
}

// hugePages returns limits for every size of the machine: without a limit, a container could use all huge pages.
func (s Settings) hugePages(limits corev1.ResourceList) []*runtimeapi.HugepageLimit {
	var all []*runtimeapi.HugepageLimit
	for _, size := range s.HugePageSizes {
		limit := uint64(0)
		for name, q := range limits {
			if asked, is := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix); is && cgroupSize(asked) == size {
				limit = uint64(max(q.Value(), 0)) //nolint:gosec // the value is not negative
			}
		}
		all = append(all, &runtimeapi.HugepageLimit{PageSize: size, Limit: limit})
	}
	return all
}

// cgroupSize writes the size of pages, such as 2Mi, as cgroups do, such as 2MB.
func cgroupSize(size string) string {
	q, err := resource.ParseQuantity(size)
	if err != nil {
		return ""
	}
	n, unit := q.Value(), 0
	units := []string{"B", "KB", "MB", "GB", "TB"}
	for n >= 1024 && n%1024 == 0 && unit < len(units)-1 {
		n, unit = n/1024, unit+1
	}
	return fmt.Sprintf("%d%s", n, units[unit])
}

// podResources returns the limits of all containers of a pod together.
func (s Settings) podResources(pod *corev1.Pod) *runtimeapi.LinuxContainerResources {
	requests, limits := podSums(pod)
	request, has := requests[corev1.ResourceCPU]
	if !has {
		request = limits[corev1.ResourceCPU]
	}
	return s.linuxResources(request, limits[corev1.ResourceCPU], limits[corev1.ResourceMemory])
}

// Whole returns the limits of a pod as a whole: of all containers together, and the overhead of its
// RuntimeClass.
func Whole(pod *corev1.Pod) *runtimeapi.LinuxContainerResources {
	requests, limits := podSums(pod)
	if _, has := requests[corev1.ResourceCPU]; !has {
		requests[corev1.ResourceCPU] = limits[corev1.ResourceCPU]
	}
	addList(requests, pod.Spec.Overhead)
	for name, more := range pod.Spec.Overhead {
		if hasLimit(limits, name) {
			addList(limits, corev1.ResourceList{name: more})
		}
	}
	return Settings{}.linuxResources(requests[corev1.ResourceCPU], limits[corev1.ResourceCPU], limits[corev1.ResourceMemory])
}

func (s Settings) podOverhead(pod *corev1.Pod) *runtimeapi.LinuxContainerResources {
	if pod.Spec.Overhead == nil {
		return &runtimeapi.LinuxContainerResources{}
	}
	cpu := pod.Spec.Overhead[corev1.ResourceCPU]
	return s.linuxResources(cpu, cpu, pod.Spec.Overhead[corev1.ResourceMemory])
}
