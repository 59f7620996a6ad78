// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"context"
	"time"

	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// GetStatsSummary returns the statistics of the pods, which use next to nothing.
func (p *Provider) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	c := p.cloud
	if err := c.injectedFault(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := metav1.NewTime(time.Now())
	s := &statsv1alpha1.Summary{Node: statsv1alpha1.NodeStats{NodeName: "inprocess", CPU: cpuUsage(now), Memory: memoryUsage(now)}}
	for _, q := range c.pods {
		if q.over {
			continue
		}
		stats := statsv1alpha1.PodStats{
			PodRef:    statsv1alpha1.PodReference{Name: q.spec.Name, Namespace: q.spec.Namespace, UID: string(q.uid)},
			StartTime: metav1.NewTime(q.created), CPU: cpuUsage(now), Memory: memoryUsage(now),
		}
		for _, k := range q.containers {
			if k.run != nil && !k.run.hasEnded() {
				stats.Containers = append(stats.Containers, statsv1alpha1.ContainerStats{
					Name: k.spec.Name, StartTime: metav1.NewTime(k.run.started), CPU: cpuUsage(now), Memory: memoryUsage(now),
				})
			}
		}
		s.Pods = append(s.Pods, stats)
	}
	return s, nil
}

// GetMetricsResource returns no metrics, because this backend measures nothing.
func (p *Provider) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) {
	return nil, p.cloud.injectedFault()
}

func cpuUsage(now metav1.Time) *statsv1alpha1.CPUStats {
	cores, total := uint64(1), uint64(1)
	return &statsv1alpha1.CPUStats{Time: now, UsageNanoCores: &cores, UsageCoreNanoSeconds: &total}
}

func memoryUsage(now metav1.Time) *statsv1alpha1.MemoryStats {
	bytes := uint64(1 << 10)
	return &statsv1alpha1.MemoryStats{Time: now, UsageBytes: &bytes, WorkingSetBytes: &bytes}
}
