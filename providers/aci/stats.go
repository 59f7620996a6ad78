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
	return service.PodStats(pod, func(c *statsv1alpha1.ContainerStats) {
		u := used[group+"/"+c.Name]
		at := metav1.NewTime(u.at)
		if u.milliCPU != nil {
			c.CPU = &statsv1alpha1.CPUStats{Time: at, UsageNanoCores: new(uint64(*u.milliCPU * 1e6))}
		}
		if u.memory != nil {
			n := uint64(*u.memory)
			c.Memory = &statsv1alpha1.MemoryStats{Time: at, UsageBytes: &n, WorkingSetBytes: &n}
		}
	})
}
