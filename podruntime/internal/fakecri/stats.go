// SPDX-License-Identifier: Apache-2.0

package fakecri

import (
	"context"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Usage is the resource usage of a container.
type Usage struct {
	CPUNanoSeconds, WorkingSet, DiskBytes uint64
}

// SetUsage sets the usage of a container from now on.
func (r *Runtime) SetUsage(id string, u Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil {
		c.usage = u
	}
}

func uint64Value(v uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: v} }

func (c *container) statsMessage() *runtimeapi.ContainerStats {
	config := cloneMessage(c.config)
	return &runtimeapi.ContainerStats{
		Attributes:    &runtimeapi.ContainerAttributes{Id: c.id, Metadata: config.GetMetadata(), Labels: config.GetLabels(), Annotations: config.GetAnnotations()},
		Cpu:           &runtimeapi.CpuUsage{Timestamp: nowNanos(), UsageCoreNanoSeconds: uint64Value(c.usage.CPUNanoSeconds)},
		Memory:        &runtimeapi.MemoryUsage{Timestamp: nowNanos(), WorkingSetBytes: uint64Value(c.usage.WorkingSet), UsageBytes: uint64Value(c.usage.WorkingSet)},
		WritableLayer: &runtimeapi.FilesystemUsage{Timestamp: nowNanos(), UsedBytes: uint64Value(c.usage.DiskBytes)},
	}
}

func (c *container) isRunning() bool { return c.state == runtimeapi.ContainerState_CONTAINER_RUNNING }

// ContainerStats returns the usage of a running container.
func (c *Client) ContainerStats(ctx context.Context, id string) (*runtimeapi.ContainerStats, error) {
	return runCall(ctx, c, "ContainerStats", id, func() (*runtimeapi.ContainerStats, error) {
		c.runtime.mu.Lock()
		defer c.runtime.mu.Unlock()
		found := c.runtime.containers[id]
		if found == nil || !found.isRunning() {
			return nil, notFound("container", id)
		}
		return found.statsMessage(), nil
	})
}

// ListContainerStats returns the usage of the running containers for the filter.
func (c *Client) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	return runCall(ctx, c, "ListContainerStats", "", func() ([]*runtimeapi.ContainerStats, error) {
		c.runtime.mu.Lock()
		defer c.runtime.mu.Unlock()
		return c.runtime.statsOf(filter), nil
	})
}

// statsOf returns the usage of the running containers for the filter. The caller holds r.mu.
func (r *Runtime) statsOf(filter *runtimeapi.ContainerStatsFilter) []*runtimeapi.ContainerStats {
	var list []*runtimeapi.ContainerStats
	for _, c := range r.containers {
		if c.isRunning() && strings.HasPrefix(c.id, filter.GetId()) && strings.HasPrefix(c.sandbox.id, filter.GetPodSandboxId()) &&
			matchesLabels(c.config.GetLabels(), filter.GetLabelSelector()) {
			list = append(list, c.statsMessage())
		}
	}
	slices.SortFunc(list, func(a, b *runtimeapi.ContainerStats) int { return strings.Compare(a.Attributes.Id, b.Attributes.Id) })
	return list
}

// podStats returns the usage of a sandbox. The caller holds r.mu. The sandbox itself uses 1 MiB.
func (r *Runtime) podStats(s *sandbox) *runtimeapi.PodSandboxStats {
	config := cloneMessage(s.config)
	containers := r.statsOf(&runtimeapi.ContainerStatsFilter{PodSandboxId: s.id})
	cpu, memory := uint64(0), uint64(1<<20)
	for _, c := range containers {
		cpu += c.GetCpu().GetUsageCoreNanoSeconds().GetValue()
		memory += c.GetMemory().GetWorkingSetBytes().GetValue()
	}
	return &runtimeapi.PodSandboxStats{
		Attributes: &runtimeapi.PodSandboxAttributes{Id: s.id, Metadata: config.GetMetadata(), Labels: config.GetLabels(), Annotations: config.GetAnnotations()},
		Linux: &runtimeapi.LinuxPodSandboxStats{
			Cpu:        &runtimeapi.CpuUsage{Timestamp: nowNanos(), UsageCoreNanoSeconds: uint64Value(cpu)},
			Memory:     &runtimeapi.MemoryUsage{Timestamp: nowNanos(), WorkingSetBytes: uint64Value(memory), UsageBytes: uint64Value(memory)},
			Network:    &runtimeapi.NetworkUsage{Timestamp: nowNanos(), DefaultInterface: &runtimeapi.NetworkInterfaceUsage{Name: "eth0", RxBytes: uint64Value(1000), TxBytes: uint64Value(2000)}},
			Containers: containers,
		},
	}
}

// PodSandboxStats returns the usage of a sandbox.
func (c *Client) PodSandboxStats(ctx context.Context, id string) (*runtimeapi.PodSandboxStats, error) {
	return runCall(ctx, c, "PodSandboxStats", id, func() (*runtimeapi.PodSandboxStats, error) {
		c.runtime.mu.Lock()
		defer c.runtime.mu.Unlock()
		switch s := c.runtime.sandboxes[id]; {
		case c.runtime.config.NoPodStats:
			return nil, unimplementedError()
		case s == nil:
			return nil, notFound("sandbox", id)
		default:
			return c.runtime.podStats(s), nil
		}
	})
}

// ListPodSandboxStats returns the usage of the ready sandboxes for the filter.
func (c *Client) ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	return runCall(ctx, c, "ListPodSandboxStats", "", func() ([]*runtimeapi.PodSandboxStats, error) {
		r := c.runtime
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.config.NoPodStats {
			return nil, unimplementedError()
		}
		var list []*runtimeapi.PodSandboxStats
		for _, s := range r.sandboxes {
			if s.ready && strings.HasPrefix(s.id, filter.GetId()) && matchesLabels(s.config.GetLabels(), filter.GetLabelSelector()) {
				list = append(list, r.podStats(s))
			}
		}
		slices.SortFunc(list, func(a, b *runtimeapi.PodSandboxStats) int { return strings.Compare(a.Attributes.Id, b.Attributes.Id) })
		return list, nil
	})
}

// ListMetricDescriptors is not implemented.
func (c *Client) ListMetricDescriptors(ctx context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return nil, c.runAction(ctx, "ListMetricDescriptors", "", unimplementedError)
}

// ListPodSandboxMetrics is not implemented.
func (c *Client) ListPodSandboxMetrics(ctx context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return nil, c.runAction(ctx, "ListPodSandboxMetrics", "", unimplementedError)
}
