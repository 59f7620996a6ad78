// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/nodehealth"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
)

// podsPerNode is how many pods are offered for each node of the partition.
const podsPerNode = 110

// storagePerPod is how much ephemeral storage is offered for each pod: the files of jobs are in SharedDir, of which Slurm knows nothing.
const storagePerPod = "20Gi"

// capacity is what the nodes of a partition have together that run jobs.
func (c Config) capacity(machines []machine) corev1.ResourceList {
	var cpus, megabytes, gpus, n int64
	for _, m := range machines {
		if m.usable {
			cpus, megabytes, gpus, n = cpus+m.cpus, megabytes+m.megabyte, gpus+m.gpus, n+1
		}
	}
	all := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(cpus, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(megabytes<<20, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(n*podsPerNode, resource.DecimalSI),
	}
	if gpus > 0 {
		all[corev1.ResourceName(c.GPUResource)] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	for name, quantity := range c.Capacity {
		all[name] = quantity
	}
	return storage.Offer(all, resource.MustParse(storagePerPod))
}

// look returns what the partition offers, and why it takes no jobs.
func (p *provider) partition(ctx context.Context) (corev1.ResourceList, error) {
	name := p.config.partition(p.in.Node.Name)
	machines, up, err := p.slurm.partition(ctx, name)
	if err != nil {
		return nil, err
	}
	offered := p.config.capacity(machines)
	switch {
	case !up:
		err = fmt.Errorf("partition %q of Slurm is down", name)
	case offered.Pods().IsZero():
		err = fmt.Errorf("partition %q of Slurm has no node that runs jobs: all %d are down or drained", name, len(machines))
	}
	return offered, err
}

func (p *provider) lookAtPartition(ctx context.Context) {
	offered, err := p.partition(ctx)
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	p.down = err
	if offered != nil {
		p.offered = offered
	}
	p.mu.Unlock()
	p.tellCapacity()
}

// tellCapacity tells what the partition offers, if that is not what was told last, and somebody listens.
func (p *provider) tellCapacity() {
	p.mu.Lock()
	tell := p.nodeChanged
	if tell == nil || p.node == nil || equality.Semantic.DeepEqual(p.offered, p.told) {
		p.mu.Unlock()
		return
	}
	p.told = p.offered
	n := p.node.DeepCopy()
	n.Status.Capacity, n.Status.Allocatable = p.offered.DeepCopy(), p.offered.DeepCopy()
	p.mu.Unlock()
	tell(n)
}

// ConfigureNode implements cli.NodeConfigurer.
func (p *provider) ConfigureNode(ctx context.Context, n *corev1.Node) {
	offered, _ := p.partition(ctx) // Ping tells why there is nothing
	if offered == nil {
		offered = p.config.capacity(nil)
	}
	n.Status.Capacity, n.Status.Allocatable = offered.DeepCopy(), offered.DeepCopy()
	nodehealth.Well(n, "Slurm") // Ping says when it is not
	n.Status.NodeInfo.OperatingSystem, n.Status.NodeInfo.ContainerRuntimeVersion = "linux", "slurm://"+cmp.Or(p.config.Containers, "programs")
	if p.in.InternalIP != "" {
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: p.in.InternalIP}}
	}
	if p.in.DaemonPort != 0 {
		n.Status.DaemonEndpoints.KubeletEndpoint.Port = p.in.DaemonPort
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offered, p.told, p.node = offered, offered, n
}

// Ping implements node.NodeProvider.
func (p *provider) Ping(ctx context.Context) error {
	if err := p.known(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.listErr, p.away, p.stuck(), p.down)
}

// NotifyNodeStatus implements node.NodeProvider. The node is complete by now: its port and what it declares come after ConfigureNode.
func (p *provider) NotifyNodeStatus(_ context.Context, notify func(*corev1.Node)) {
	p.mu.Lock()
	p.nodeChanged, p.node = notify, p.node.DeepCopy()
	p.mu.Unlock()
	p.tellCapacity() // the partition may have answered since ConfigureNode
}
