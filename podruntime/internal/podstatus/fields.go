// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

// setAddresses sets the addresses of node and pod: an address of the node's primary family, and an address of
// the other family.
func (f *facts) setAddresses(s *corev1.PodStatus) {
	for _, ip := range f.seen.HostIPs {
		s.HostIPs = append(s.HostIPs, corev1.HostIP{IP: ip})
	}
	if len(s.HostIPs) > 0 {
		s.HostIP = s.HostIPs[0].IP
	}
	var ips []string
	if f.pod.Spec.HostNetwork {
		ips = f.seen.HostIPs
	} else if box, _ := f.view.Sandbox(); box != nil {
		ips = f.sortIPs(box.IPs)
	}
	if len(ips) == 0 {
		s.PodIP, s.PodIPs = f.pod.Status.PodIP, f.pod.Status.PodIPs // of the stopped sandbox
		return
	}
	for _, ip := range ips {
		s.PodIPs = append(s.PodIPs, corev1.PodIP{IP: ip})
	}
	s.PodIP = s.PodIPs[0].IP
}

func (f *facts) sortIPs(ips []string) (out []string) {
	six := false
	if len(f.seen.HostIPs) > 0 {
		ip, err := netip.ParseAddr(f.seen.HostIPs[0])
		six = err == nil && ip.Is6()
	}
	for _, family := range []bool{six, !six} {
		for _, s := range ips {
			if ip, err := netip.ParseAddr(s); err == nil && ip.Is6() == family {
				out = append(out, ip.String())
				break
			}
		}
	}
	return out
}

func (f *facts) mountStatuses(c *corev1.Container) (out []corev1.VolumeMountStatus) {
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		s := corev1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			mode := corev1.RecursiveReadOnlyDisabled
			if m.RecursiveReadOnly != nil && *m.RecursiveReadOnly != mode && f.seen.RecursiveReadOnly &&
				(m.MountPropagation == nil || *m.MountPropagation == corev1.MountPropagationNone) {
				mode = corev1.RecursiveReadOnlyEnabled
			}
			s.RecursiveReadOnly = &mode
		}
		out = append(out, s)
	}
	return out
}

// Below these values, the kernel rounds CPU shares and quotas, so the spec is more exact.
const (
	minShares   = 2
	minCPULimit = 10
)

// containerResources returns the allocated and the actual resources of a container.
func (f *facts) containerResources(c *corev1.Container, i *plan.Container, old *corev1.ContainerStatus) (corev1.ResourceList, *corev1.ResourceRequirements) {
	allocated := &c.Resources
	had := f.view.Has(i)
	if f.mem.ResizePending != nil && had != nil {
		allocated = had
	}
	has := allocated.DeepCopy()
	if i.State != plan.Running {
		return allocated.Requests, has
	}
	actual := corev1.ResourceRequirements{}
	if had != nil {
		actual = *had
	} else if old != nil && old.Resources != nil && old.ContainerID == f.containerID(i) {
		actual = *old.Resources
	}
	layActual(has.Limits, actual.Limits, 0)
	layActual(has.Requests, actual.Requests, 0)
	if r := i.Resources; r != nil {
		layActual(has.Limits, r.Limits, minCPULimit)
		layActual(has.Requests, r.Requests, minShares)
	}
	return allocated.Requests, has
}

// layActual overwrites the CPU and memory in list with the actual values. It keeps the CPU if both values are at most least.
func layActual(list, actual corev1.ResourceList, least int64) {
	if list == nil {
		return
	}
	if q, has := actual[corev1.ResourceCPU]; has && (least == 0 || q.MilliValue() > least || list.Cpu().MilliValue() > least) {
		list[corev1.ResourceCPU] = q.DeepCopy()
	}
	if q, has := actual[corev1.ResourceMemory]; has {
		list[corev1.ResourceMemory] = q.DeepCopy()
	}
}
