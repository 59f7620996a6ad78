// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"sync"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// GetStatsSummary returns what running pods use: one request for each, as Nomad has none for several.
func (p *provider) GetStatsSummary(ctx context.Context) (*statsv1alpha1.Summary, error) {
	type running struct {
		pod   *corev1.Pod
		alloc string
	}
	var all []running
	p.store.mu.Lock()
	for _, e := range p.store.pods {
		if a, _ := e.first(); a != nil && !e.hidden && a.ClientStatus == nomadapi.AllocClientStatusRunning {
			all = append(all, running{e.pod, a.ID})
		}
	}
	p.store.mu.Unlock()
	summary := &statsv1alpha1.Summary{Node: statsv1alpha1.NodeStats{NodeName: p.nodeName}, Pods: []statsv1alpha1.PodStats{}}
	var mu sync.Mutex
	var wait sync.WaitGroup
	room := make(chan struct{}, together)
	for _, r := range all {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			usage, err := p.client.stats(ctx, r.alloc)
			if err != nil {
				return // it has just ended, or its client is away
			}
			mu.Lock()
			defer mu.Unlock()
			summary.Pods = append(summary.Pods, podStats(r.pod, usage, p.mhz()))
		})
	}
	wait.Wait()
	return summary, ctx.Err()
}

func (p *provider) mhz() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.place.mhz
}

// podStats writes what Nomad measures: MHz, and bytes.
func podStats(pod *corev1.Pod, usage *nomadapi.AllocResourceUsage, mhz float64) statsv1alpha1.PodStats {
	at := metav1.NewTime(time.Unix(0, usage.Timestamp))
	out := statsv1alpha1.PodStats{PodRef: statsv1alpha1.PodReference{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}}
	var cores, memory uint64
	for name, task := range usage.Tasks {
		if task.ResourceUsage == nil || task.ResourceUsage.CpuStats == nil || task.ResourceUsage.MemoryStats == nil {
			continue
		}
		var nano uint64
		if mhz > 0 {
			nano = uint64(task.ResourceUsage.CpuStats.TotalTicks / mhz * 1e9)
		}
		m := task.ResourceUsage.MemoryStats
		bytes := max(m.Usage, m.RSS)
		cores, memory = cores+nano, memory+bytes
		out.Containers = append(out.Containers, statsv1alpha1.ContainerStats{
			Name: name, CPU: &statsv1alpha1.CPUStats{Time: at, UsageNanoCores: &nano},
			Memory: &statsv1alpha1.MemoryStats{Time: at, UsageBytes: &bytes, WorkingSetBytes: &bytes, RSSBytes: &m.RSS},
		})
	}
	out.CPU = &statsv1alpha1.CPUStats{Time: at, UsageNanoCores: &cores}
	out.Memory = &statsv1alpha1.MemoryStats{Time: at, UsageBytes: &memory, WorkingSetBytes: &memory}
	return out
}

// GetMetricsResource has nothing: Nomad does not tell the CPU seconds that such metrics count.
func (p *provider) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }
