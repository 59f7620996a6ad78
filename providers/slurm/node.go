// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
)

// podsPerNode is the number of pods for each node of the partition.
const podsPerNode = 110

// storagePerPod is the ephemeral storage that the node offers for each pod. The files of jobs are in SharedDir,
// and Slurm has no figure for it.
const storagePerPod = "20Gi"

// capacity returns the total capacity of the nodes of a partition that run jobs.
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

// partition returns the resources of the partition, and the reason if it takes no jobs.
func (d *driver) partition(ctx context.Context) (corev1.ResourceList, error) {
	name := d.config.partition(d.in.Node.Name)
	machines, up, err := d.slurm.partition(ctx, name)
	if err != nil {
		return nil, err
	}
	offered := d.config.capacity(machines)
	switch {
	case !up:
		err = fmt.Errorf("partition %q of Slurm is down", name)
	case offered.Pods().IsZero():
		err = fmt.Errorf("partition %q of Slurm has no node that runs jobs: all %d are down or drained", name, len(machines))
	}
	return offered, err
}

func (d *driver) lookAtPartition(ctx context.Context) {
	offered, err := d.partition(ctx)
	if ctx.Err() != nil {
		return
	}
	d.mu.Lock()
	d.down = err
	d.mu.Unlock()
	if offered != nil {
		d.provider.Offer(offered)
	}
}

// ConfigureNode implements service.NodeConfigurer.
func (d *driver) ConfigureNode(ctx context.Context, n *corev1.Node) {
	offered, _ := d.partition(ctx) // Ping reports a failure
	if offered == nil {
		offered = d.config.capacity(nil)
	}
	n.Status.Capacity, n.Status.Allocatable = offered.DeepCopy(), offered.DeepCopy()
	n.Status.NodeInfo.OperatingSystem, n.Status.NodeInfo.ContainerRuntimeVersion = "linux", "slurm://"+cmp.Or(d.config.Containers, "programs")
}

// Ping implements service.Pinger.
func (d *driver) Ping(ctx context.Context) error {
	pods := d.provider.Cache()
	if err := pods.Wait(ctx); err != nil {
		return err
	}
	away := pods.Away()
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(away, d.stuck(), d.down)
}
