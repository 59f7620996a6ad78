// SPDX-License-Identifier: Apache-2.0

// Package sizing finds what can be bought for what a pod asks: a service sells CPU and memory in steps, or in sizes of a table.
//
// The guarantee: what is found is never less than what was asked for, and of all that has room it is that of the fewest CPUs, and of
// those that with the least memory. A table is data, with its source and date where it stands.
//
// What surprises: nothing is known of prices. A table whose rows do not get dearer with CPUs needs an order of its own.
package sizing

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Units of memory, in bytes.
const (
	Mi = int64(1) << 20
	Gi = int64(1) << 30
)

// Steps are the numbers from one to another, each by more than the one before. By is not 0.
type Steps struct{ From, To, By int64 }

// One is a single number.
func One(n int64) Steps { return Steps{n, n, 1} }

// Range is from one number to another by steps.
func Range(from, to, by int64) Steps { return Steps{from, to, by} }

// Up returns the smallest number that is at least n. False: there is none.
func (s Steps) Up(n int64) (int64, bool) {
	if n <= s.From {
		return s.From, true
	}
	n = s.From + (n-s.From+s.By-1)/s.By*s.By
	return n, n <= s.To
}

// Row is what can be had with a number of CPUs.
type Row struct {
	MilliCPU int64
	// Memory is in bytes, ascending.
	Memory []Steps
}

// At is the row of a number of CPUs.
func At(milliCPU int64, memory ...Steps) Row { return Row{milliCPU, memory} }

// Size is CPU and memory, in bytes.
type Size struct{ MilliCPU, Memory int64 }

// Fit returns the smallest size of rows, which are in the order of their CPUs, with room for what is asked. False: there is none.
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

// Of is what a list says of CPU and memory.
func Of(l corev1.ResourceList) Size {
	cpu, memory := l[corev1.ResourceCPU], l[corev1.ResourceMemory]
	return Size{cpu.MilliValue(), memory.Value()}
}

// Add is both together.
func (s Size) Add(o Size) Size { return Size{s.MilliCPU + o.MilliCPU, s.Memory + o.Memory} }

// Most is the larger of each.
func (s Size) Most(o Size) Size { return Size{max(s.MilliCPU, o.MilliCPU), max(s.Memory, o.Memory)} }

// String writes a size for people.
func (s Size) String() string {
	return fmt.Sprintf("%s CPUs and %s", resource.NewMilliQuantity(s.MilliCPU, resource.DecimalSI), resource.NewQuantity(s.Memory, resource.BinarySI))
}
