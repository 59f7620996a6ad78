// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/batch/azbatch"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
)

// errContainers is the error for a pool that runs every task inside a container.
var errContainers = errors.New("it has a containerConfiguration, so that every task would run inside a container: make a pool without one")

const (
	// waitsEvery is the interval of checks why tasks wait.
	waitsEvery = time.Minute
	// storagePerPod is the ephemeral storage of the node for each pod, because Batch does not count it.
	storagePerPod = "10Gi"
)

// poolMachines returns the machines of the pool, and reads the pool again after d.at.pool. A pool that cannot run pods
// is an error.
func (d *driver) poolMachines(ctx context.Context) (*machines, error) {
	d.mu.Lock()
	known := d.machines
	d.mu.Unlock()
	if known != nil && time.Since(known.seen) < d.at.pool {
		return known, nil
	}
	p, err := d.client.readPool(ctx, d.config.Pool)
	if err != nil {
		return nil, err
	}
	vm := p.VirtualMachineConfiguration
	switch {
	case vm == nil:
		return nil, fmt.Errorf("pool %s has no machines that this provider knows", d.config.Pool)
	case vm.ContainerConfiguration != nil:
		return nil, fmt.Errorf("pool %s: %w", d.config.Pool, errContainers)
	case vm.WindowsConfiguration != nil || strings.Contains(strings.ToLower(valueOf(vm.NodeAgentSKUID)), "windows"):
		return nil, fmt.Errorf("pool %s has Windows: name a pool with Linux", d.config.Pool)
	}
	m := &machines{pool: d.config.Pool, vmSize: valueOf(p.VMSize), slotsEach: max(1, int64(valueOf(p.TaskSlotsPerNode))), gpus: d.config.GPUs, seen: time.Now(), most: d.config.MaxNodes}
	m.each, _ = d.config.sizeOf(m.vmSize)
	if m.most == 0 {
		m.most = int64(valueOf(p.TargetDedicatedNodes)) + int64(valueOf(p.TargetLowPriorityNodes))
	}
	if s := valueOf(p.AllocationState); s != "" && s != azbatch.AllocationStateSteady {
		m.resizing = ", pool " + string(s)
	}
	for _, e := range p.ResizeErrors {
		m.resizing += ": " + valueOf(e.Code) + ": " + valueOf(e.Message)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.machines = m
	return m, nil
}

// offeredResources returns the resources of the pool for pods.
func (m *machines) offeredResources() corev1.ResourceList {
	all := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(m.most*m.each.milliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(m.most*m.each.memory, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(m.most*m.slotsEach, resource.DecimalSI),
	}
	if m.gpus.Resource != "" {
		all[m.gpus.Resource] = *resource.NewQuantity(m.most*m.gpus.PerNode, resource.DecimalSI)
	}
	return storage.Offer(all, resource.MustParse(storagePerPod))
}

// ConfigureNode implements service.NodeConfigurer.
func (d *driver) ConfigureNode(ctx context.Context, n *corev1.Node) {
	m, err := d.poolMachines(ctx)
	if err != nil {
		log.G(ctx).WithError(err).Warn("The node offers nothing until the pool can be looked at")
		m = &machines{}
	}
	n.Status.Capacity, n.Status.Allocatable = m.offeredResources(), m.offeredResources()
	n.Status.NodeInfo.OperatingSystem, n.Status.NodeInfo.ContainerRuntimeVersion = "linux", "azurebatch://"+d.config.Containers
}

// explainWaits finds the reason why tasks have been waiting, at most once a minute.
func (d *driver) explainWaits(ctx context.Context) {
	waiting := false
	d.mu.Lock()
	for _, t := range d.tasks {
		waiting = waiting || isState(t.Task, azbatch.TaskStateActive) && time.Since(valueOf(t.StateTransitionTime)) > waitsEvery/6
	}
	m := d.machines
	due := waiting && m != nil && time.Since(d.asked) >= waitsEvery
	d.mu.Unlock()
	if !due {
		return
	}
	text, err := d.client.countNodes(ctx, d.config.Pool)
	if err != nil {
		return // the result is only a message
	}
	d.mu.Lock()
	d.asked, d.waits = time.Now(), ": "+text+m.resizing
	d.mu.Unlock()
}

// countNodes returns the numbers of machines of a pool by state, dedicated and spot machines together.
func (c *client) countNodes(ctx context.Context, pool string) (string, error) {
	page, err := c.NewListPoolNodeCountsPager(&azbatch.ListPoolNodeCountsOptions{Filter: new("poolId eq '" + pool + "'")}).NextPage(ctx)
	if err != nil {
		return "", batch.Explain("count the machines of pool "+pool, err)
	}
	return countsText(page.Value), nil
}

func countsText(pools []azbatch.PoolNodeCounts) string {
	sum := map[string]int32{}
	for _, p := range pools {
		for _, n := range []*azbatch.NodeCounts{p.Dedicated, p.LowPriority} {
			var of map[string]int32
			if data, err := json.Marshal(n); err == nil && json.Unmarshal(data, &of) == nil {
				for state, n := range of {
					sum[strings.ToLower(state)] += n
				}
			}
		}
	}
	text := fmt.Sprintf("%d of %d machines are idle", sum["idle"], sum["total"])
	for _, state := range slices.Sorted(maps.Keys(sum)) {
		if n := sum[state]; n > 0 && state != "idle" && state != "total" {
			text += fmt.Sprintf(", %d %s", n, state)
		}
	}
	return text
}
