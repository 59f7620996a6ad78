// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"fmt"
	"path"
	"slices"
	"strings"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// place has the clients' resources for pods.
type place struct {
	clients int
	mhz     float64 // of a CPU, of the fastest client
	cpu     float64 // in CPUs of the fastest client
	memory  int64   // bytes
	disk    int64   // bytes, for allocations
	devices map[string]int64
	hosts   map[string]string // addresses of all clients, by ID
}

// placeOf adds up the resources of the ready and eligible clients in the datacenters and the node pool, without their reserved
// resources.
func placeOf(nodes []*nomadapi.NodeListStub, c Config) place {
	p := place{devices: map[string]int64{}, hosts: map[string]string{}}
	var shares float64
	for _, n := range nodes {
		p.hosts[n.ID] = n.Address
		in := slices.ContainsFunc(c.Datacenters, func(pattern string) bool { ok, _ := path.Match(pattern, n.Datacenter); return ok })
		if !in || n.NodePool != c.NodePool || n.Status != nomadapi.NodeStatusReady || n.SchedulingEligibility != nomadapi.NodeSchedulingEligible || n.NodeResources == nil {
			continue
		}
		p.clients++
		r := n.NodeResources
		if r.Cpu.TotalCpuCores > 0 {
			p.mhz = max(p.mhz, float64(r.Cpu.CpuShares)/float64(r.Cpu.TotalCpuCores))
		}
		shares += float64(r.Cpu.CpuShares)
		p.memory += r.Memory.MemoryMB << 20
		p.disk += r.Disk.DiskMB << 20
		if k := n.ReservedResources; k != nil {
			shares -= float64(k.Cpu.CpuShares)
			p.memory -= int64(k.Memory.MemoryMB) << 20
			p.disk -= int64(k.Disk.DiskMB) << 20
		}
		for _, d := range r.Devices {
			for kubernetes, name := range c.Devices {
				if name == d.Type || name == d.Vendor+"/"+d.Type || name == d.Vendor+"/"+d.Type+"/"+d.Name {
					p.devices[kubernetes] += int64(len(d.Instances))
				}
			}
		}
	}
	if p.mhz > 0 {
		p.cpu = shares / p.mhz
	}
	return p
}

// unready returns why no pod can run, or nil if pods can.
func (p place) unready(c Config) error {
	if p.clients > 0 {
		return nil
	}
	return fmt.Errorf("no client of Nomad is ready and eligible in the datacenters %s and the node pool %s", strings.Join(c.Datacenters, ", "), c.NodePool)
}

// capacity returns the capacity of the node.
func (p place) capacity(c Config) corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(max(0, int64(p.cpu*1000)), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(max(0, p.memory), resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(max(0, p.disk), resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(c.MaxPods, resource.DecimalSI),
	}
	for name, n := range p.devices {
		list[corev1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	return list
}
