// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/stats"
)

// nodeProperties are the properties of the machine for its node.
type nodeProperties struct {
	root     string              // the directory of pods
	capacity corev1.ResourceList // replaces the capacity of the machine
	reserved reserved
	info     *runtimeInfo
}

// fillNode writes the properties into fields of n without a value.
func (p *nodeProperties) fillNode(ctx context.Context, n *corev1.Node) {
	p.fillCapacity(&n.Status)
	is, info := stats.NodeInfo(), &n.Status.NodeInfo
	is.ContainerRuntimeVersion = p.info.readVersion(ctx)
	for to, value := range map[*string]string{
		&info.Architecture: is.Architecture, &info.OperatingSystem: is.OperatingSystem, &info.KernelVersion: is.KernelVersion,
		&info.OSImage: is.OSImage, &info.MachineID: is.MachineID, &info.SystemUUID: is.SystemUUID, &info.BootID: is.BootID,
		&info.ContainerRuntimeVersion: is.ContainerRuntimeVersion,
	} {
		if *to == "" {
			*to = value
		}
	}
	declareFeatures(n)
	wellConditions(n, time.Now())
}

// fillCapacity writes the capacity of the machine, or of the configuration, into s, and the allocatable amounts. It keeps a value that s already has, unless the configuration sets that resource.
func (p *nodeProperties) fillCapacity(s *corev1.NodeStatus) {
	if s.Capacity == nil {
		s.Capacity = corev1.ResourceList{}
	}
	if s.Allocatable == nil {
		s.Allocatable = corev1.ResourceList{}
	}
	for name, quantity := range stats.Capacity(p.root, stats.DefaultPods) {
		if _, said := s.Capacity[name]; !said {
			s.Capacity[name] = quantity
		}
	}
	for name, quantity := range p.capacity {
		s.Capacity[name] = quantity.DeepCopy()
		delete(s.Allocatable, name)
	}
	for name, quantity := range s.Capacity {
		if _, said := s.Allocatable[name]; said {
			continue
		}
		left := quantity.DeepCopy()
		if kept := p.reserved.amountOf(name); !kept.IsZero() {
			left.Sub(kept)
		}
		if left.Sign() < 0 {
			left = *resource.NewQuantity(0, left.Format)
		}
		s.Allocatable[name] = left
	}
}
