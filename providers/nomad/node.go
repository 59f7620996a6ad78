// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/nodehealth"
)

// nodesWait is how long a question about clients waits for a change.
const nodesWait = 5 * time.Minute

// place is what the clients have that pods may run on.
type place struct {
	clients int
	mhz     float64 // of a CPU, of the fastest client
	cpu     float64 // in CPUs of the fastest client
	memory  int64   // bytes
	disk    int64   // bytes, for allocations
	devices map[string]int64
	hosts   map[string]string // addresses of all clients, by ID
}

// placeOf adds up the clients that are ready and eligible, in the datacenters and the node pool, less what they reserve.
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

// unready says why no pod can run, nil if one can.
func (p place) unready(c Config) error {
	if p.clients > 0 {
		return nil
	}
	return fmt.Errorf("no client of Nomad is ready and eligible in the datacenters %s and the node pool %s", strings.Join(c.Datacenters, ", "), c.NodePool)
}

// capacity is that of the node.
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

// ConfigureNode implements cli.NodeConfigurer.
func (p *provider) ConfigureNode(ctx context.Context, n *corev1.Node) {
	ctx, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	nodes, _, err := p.client.nodes(ctx, 0)
	if err != nil {
		log.G(ctx).WithError(err).Warn("The capacity of Nomad is not known yet")
	}
	found := placeOf(nodes, p.config)
	found.write(n, p.config)
	nodehealth.Well(n, "Nomad") // Ping says when it is not
	n.Status.NodeInfo.ContainerRuntimeVersion = "nomad://" + p.config.Drivers[0]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.node = n
}

// write gives a node its capacity.
func (p place) write(n *corev1.Node, c Config) {
	n.Status.Capacity = p.capacity(c)
	n.Status.Allocatable = n.Status.Capacity.DeepCopy()
}

// NotifyNodeStatus implements node.NodeProvider. The node is complete by now: its port and what it declares come after ConfigureNode.
func (p *provider) NotifyNodeStatus(_ context.Context, notify func(*corev1.Node)) {
	p.mu.Lock()
	p.notifyNode, p.node = notify, p.node.DeepCopy()
	known, found := p.placeError == nil, p.place
	p.mu.Unlock()
	if known { // before anybody could be told
		p.tellPlace(found)
	}
}

// followNodes keeps the capacity up to date until ctx ends, by questions that wait for a change.
func (p *provider) followNodes(ctx context.Context) {
	var index uint64
	pause := newPause()
	for ctx.Err() == nil {
		nodes, next, err := p.client.nodes(ctx, index)
		if err != nil {
			index = 0
			p.mu.Lock()
			p.placeError = err
			p.mu.Unlock()
			pause.wait(ctx)
			continue
		}
		pause.reset()
		index = next
		p.takePlace(placeOf(nodes, p.config))
		p.knownOnce.Do(func() { close(p.known) })
		pause.short(ctx) // clients change one by one
	}
}

func (p *provider) takePlace(found place) {
	p.store.mu.Lock()
	if !maps.Equal(p.store.hosts, found.hosts) {
		p.store.hosts = found.hosts
		for _, e := range p.store.pods {
			p.store.touch(e)
		}
	}
	p.store.mu.Unlock()
	p.mu.Lock()
	p.place, p.placeError = found, nil
	p.mu.Unlock()
	p.tellPlace(found)
}

// tellPlace reports what the clients have.
func (p *provider) tellPlace(found place) {
	p.mu.Lock()
	notify, n := p.notifyNode, p.node
	p.mu.Unlock()
	if notify == nil || n == nil {
		return
	}
	n = n.DeepCopy()
	found.write(n, p.config)
	notify(n)
}

// Ping implements node.NodeProvider.
func (p *provider) Ping(ctx context.Context) error {
	for _, ready := range []<-chan struct{}{p.known, p.synced} {
		if err := p.wait(ctx, ready); err != nil {
			return err
		}
	}
	if err := p.client.led(ctx); err != nil { // the stream and questions that wait go on without a leader
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.down != nil:
		return p.down
	case p.listError != nil:
		return p.listError
	case p.placeError != nil:
		return p.placeError
	}
	return p.place.unready(p.config)
}
