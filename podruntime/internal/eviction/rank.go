// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

// Critical is the least priority of pods never evicted.
const Critical = lifecycle.CriticalPriority

// Pod is a running pod and its usage, or nil if the usage is unknown.
type Pod struct {
	Pod   *corev1.Pod
	Stats *statsv1alpha1.PodStats
}

// Rank returns the candidates for eviction, in their order for a resource. First come pods above their requests, then pods of a low priority, then
// pods with the greatest excess over their request. There are no requests for processes. A pod without measurements counts as above its request.
func Rank(pods []Pod, r Resource) []Pod {
	list := slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool { return p.podPriority() >= Critical })
	slices.SortStableFunc(list, func(a, b Pod) int {
		ua, ub := a.usedAmount(r), b.usedAmount(r)
		ra, rb := a.requestedAmount(r), b.requestedAmount(r)
		return cmp.Or(-compareBool(ua < 0 || ua > ra, ub < 0 || ub > rb), cmp.Compare(a.podPriority(), b.podPriority()), -compareBool(ua < 0, ub < 0), -cmp.Compare(ua-ra, ub-rb))
	})
	return list
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (p Pod) podPriority() int32 {
	if p.Pod.Spec.Priority == nil {
		return 0
	}
	return *p.Pod.Spec.Priority
}

// usedAmount returns the usage of the pod, or -1 if it is unknown.
func (p Pod) usedAmount(r Resource) int64 {
	var used *uint64
	switch s := p.Stats; {
	case s == nil:
	case r == Memory && s.Memory != nil:
		used = s.Memory.WorkingSetBytes
	case r == Disk && s.EphemeralStorage != nil:
		used = s.EphemeralStorage.UsedBytes
	case r == Inodes && s.EphemeralStorage != nil:
		used = s.EphemeralStorage.InodesUsed
	case r == Process && s.ProcessStats != nil:
		used = s.ProcessStats.ProcessCount
	}
	if used == nil {
		return -1
	}
	return int64(*used) //nolint:gosec // sizes of machines fit
}

// requestedAmount returns the requests of the pod.
func (p Pod) requestedAmount(r Resource) int64 {
	name := corev1.ResourceName(r)
	if name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage {
		return 0
	}
	var sum int64
	for i := range p.Pod.Spec.Containers {
		q := p.Pod.Spec.Containers[i].Resources.Requests[name]
		sum += q.Value()
	}
	for i := range p.Pod.Spec.InitContainers {
		if c := &p.Pod.Spec.InitContainers[i]; plan.Sidecar(c) {
			q := c.Resources.Requests[name]
			sum += q.Value()
		}
	}
	return sum
}

// Excess lists the pod's containers above their request of a resource, for the message of an eviction.
func (p Pod) Excess(r Resource) string {
	if p.Stats == nil || r != Memory && r != Disk {
		return ""
	}
	var text strings.Builder
	for i := range p.Stats.Containers {
		s := &p.Stats.Containers[i]
		at := slices.IndexFunc(p.Pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == s.Name })
		if at < 0 {
			continue
		}
		var used uint64
		for _, part := range partsOf(s, r) {
			if part != nil {
				used += *part
			}
		}
		request := p.Pod.Spec.Containers[at].Resources.Requests[corev1.ResourceName(r)]
		if usage := resource.NewQuantity(int64(used), resource.BinarySI); usage.Cmp(request) > 0 { //nolint:gosec // sizes of machines fit
			fmt.Fprintf(&text, "Container %s was using %s, request is %s, has larger consumption of %s. ", s.Name, usage, request.String(), r)
		}
	}
	return text.String()
}

// partsOf returns the usage of a resource by a container, in parts.
func partsOf(s *statsv1alpha1.ContainerStats, r Resource) []*uint64 {
	var parts []*uint64
	switch {
	case r == Memory && s.Memory != nil:
		parts = append(parts, s.Memory.WorkingSetBytes)
	case r == Disk:
		for _, fs := range []*statsv1alpha1.FsStats{s.Rootfs, s.Logs} {
			if fs != nil {
				parts = append(parts, fs.UsedBytes)
			}
		}
	}
	return parts
}
