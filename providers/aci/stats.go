// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Stats implements service.Measurer with the usage in the last minute of Azure Monitor, if the configuration
// enables it.
func (d *driver) Stats(ctx context.Context, of []service.Target[instance]) (all []statsv1alpha1.PodStats, err error) {
	if !d.config.Stats {
		return nil, nil
	}
	var names []string
	for _, t := range of {
		if t.Pod.Status.Phase == corev1.PodRunning {
			names = append(names, value(t.Instance.group.Name))
		}
	}
	used, err := d.monitor.read(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, t := range of {
		if t.Pod.Status.Phase == corev1.PodRunning {
			all = append(all, podStats(t.Pod, value(t.Instance.group.Name), used))
		}
	}
	return all, nil
}

// podStats returns the usage of one pod. Containers without a measurement have no values.
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
