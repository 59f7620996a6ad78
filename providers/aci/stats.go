// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"slices"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// GetStatsSummary has what pods used in the last minute that Azure Monitor has, if the configuration wants it, else no pods.
func (p *provider) GetStatsSummary(ctx context.Context) (*statsv1alpha1.Summary, error) {
	out := &statsv1alpha1.Summary{Node: statsv1alpha1.NodeStats{NodeName: p.owner.Node}}
	if !p.config.Stats {
		return out, nil
	}
	var names []string
	pods := map[string]*corev1.Pod{}
	for _, pod := range p.cache.All() {
		_, i, ok := p.cache.Get(pod.UID)
		if ok && pod.Status.Phase == corev1.PodRunning {
			name := value(i.group.Name)
			names, pods[name] = append(names, name), pod
		}
	}
	slices.Sort(names)
	used, err := p.monitor.read(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		out.Pods = append(out.Pods, podStats(pods[name], name, used))
	}
	return out, nil
}

// podStats is one pod. Those of containers that are not measured yet have no values.
func podStats(pod *corev1.Pod, group string, used map[string]usage) statsv1alpha1.PodStats {
	out := statsv1alpha1.PodStats{
		PodRef:    statsv1alpha1.PodReference{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)},
		StartTime: value(pod.Status.StartTime),
	}
	var cpu, memory uint64
	var at metav1.Time
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.State.Running == nil {
			continue
		}
		c := statsv1alpha1.ContainerStats{Name: s.Name, StartTime: s.State.Running.StartedAt}
		u := used[group+"/"+s.Name]
		if u.milliCPU != nil {
			n := uint64(*u.milliCPU * 1e6)
			at, cpu = metav1.NewTime(u.at), cpu+n
			c.CPU = &statsv1alpha1.CPUStats{Time: at, UsageNanoCores: &n}
		}
		if u.memory != nil {
			n := uint64(*u.memory)
			at, memory = metav1.NewTime(u.at), memory+n
			c.Memory = &statsv1alpha1.MemoryStats{Time: at, UsageBytes: &n, WorkingSetBytes: &n}
		}
		out.Containers = append(out.Containers, c)
	}
	if !at.IsZero() {
		out.CPU = &statsv1alpha1.CPUStats{Time: at, UsageNanoCores: &cpu}
		out.Memory = &statsv1alpha1.MemoryStats{Time: at, UsageBytes: &memory, WorkingSetBytes: &memory}
	}
	return out
}

// GetMetricsResource returns none: it is about counters, and Azure Monitor has averages.
func (p *provider) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }
