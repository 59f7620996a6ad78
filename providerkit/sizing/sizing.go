// SPDX-License-Identifier: Apache-2.0

// Package sizing finds the size to buy for the CPU and memory requests of a pod. A service sells CPU and memory
// in steps, or in the sizes of a table.
//
// The guarantee: a found size is never smaller than the request. Of all sizes that are large enough, it has the fewest CPUs, and then the
// least memory. A table is data, with its source and date beside it.
//
// Note: the package knows no prices. If prices do not increase with the CPUs, a table needs its own order.
package sizing

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Units of memory, in bytes.
const (
	Mi = int64(1) << 20
	Gi = int64(1) << 30
)

// Steps are the numbers from From to To in increments of By, which is not 0.
type Steps struct{ From, To, By int64 }

// One is a single number.
func One(n int64) Steps { return Steps{n, n, 1} }

// Range is from one number to another by steps.
func Range(from, to, by int64) Steps { return Steps{from, to, by} }

// Up returns the smallest step of at least n. It returns false if there is none.
func (s Steps) Up(n int64) (int64, bool) {
	if n <= s.From {
		return s.From, true
	}
	n = s.From + (n-s.From+s.By-1)/s.By*s.By
	return n, n <= s.To
}

// Row is the choice of memory for a number of CPUs.
type Row struct {
	MilliCPU int64
	// Memory is in bytes, ascending.
	Memory []Steps
}

// At is the row of a number of CPUs.
func At(milliCPU int64, memory ...Steps) Row { return Row{milliCPU, memory} }

// Size is CPU and memory, in bytes.
type Size struct{ MilliCPU, Memory int64 }

// Fit returns the smallest size in rows with room for asked. The rows are in the order of their CPUs. It returns false if no size is large
// enough.
func Fit(rows []Row, asked Size) (Size, bool) {
	for _, r := range rows {
		if r.MilliCPU < asked.MilliCPU {
			continue
		}
		for _, s := range r.Memory {
			if memory, has := s.Up(asked.Memory); has {
				return Size{r.MilliCPU, memory}, true
			}
		}
	}
	return Size{}, false
}

// Asked returns the resources that a container asks for: its limits, else its requests, else the defaults.
func Asked(defaults corev1.ResourceList, of corev1.ResourceRequirements) corev1.ResourceList {
	all := corev1.ResourceList{}
	for _, l := range []corev1.ResourceList{defaults, of.Requests, of.Limits} {
		maps.Copy(all, l)
	}
	return all
}

// Of returns the CPU and memory of a resource list as a Size.
func Of(l corev1.ResourceList) Size {
	cpu, memory := l[corev1.ResourceCPU], l[corev1.ResourceMemory]
	return Size{cpu.MilliValue(), memory.Value()}
}

// Add returns the sum.
func (s Size) Add(o Size) Size { return Size{s.MilliCPU + o.MilliCPU, s.Memory + o.Memory} }

// Most returns the larger CPU and the larger memory of both.
func (s Size) Most(o Size) Size { return Size{max(s.MilliCPU, o.MilliCPU), max(s.Memory, o.Memory)} }

// Together returns the amount of one resource that a pod needs: for all containers that run together, and for each
// init container with the sidecars that start before it. of returns the amount for a container.
func Together(pod *corev1.Pod, of func(*corev1.Container) int64) int64 {
	var together, most int64
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways { // a sidecar
			together += of(c)
		} else {
			most = max(most, together+of(c))
		}
	}
	for i := range pod.Spec.Containers {
		together += of(&pod.Spec.Containers[i])
	}
	return max(together, most)
}

// OfPod is Together for CPU and memory.
func OfPod(pod *corev1.Pod, of func(*corev1.Container) Size) Size {
	return Size{
		Together(pod, func(c *corev1.Container) int64 { return of(c).MilliCPU }),
		Together(pod, func(c *corev1.Container) int64 { return of(c).Memory }),
	}
}

// String writes a size for people.
func (s Size) String() string {
	return fmt.Sprintf("%s CPUs and %s", resource.NewMilliQuantity(s.MilliCPU, resource.DecimalSI), resource.NewQuantity(s.Memory, resource.BinarySI))
}
