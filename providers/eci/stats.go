// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// pageOfMetrics is the maximum number of groups in a request.
const pageOfMetrics = 20

// Stats implements service.Measurer with the newest record of each running pod at ECI, if the configuration
// enables it.
func (d *driver) Stats(ctx context.Context, of []service.Target[instance]) (all []statsv1alpha1.PodStats, err error) {
	if !d.config.Stats {
		return nil, nil
	}
	of = slices.DeleteFunc(slices.Clone(of), func(t service.Target[instance]) bool { return t.Pod.Status.Phase != corev1.PodRunning })
	for page := range slices.Chunk(of, pageOfMetrics) {
		var ids []string
		for _, t := range page {
			ids = append(ids, t.Instance.status.ContainerGroupID)
		}
		text, err := json.Marshal(ids)
		if err != nil {
			return nil, fmt.Errorf("write the IDs of groups: %w", err)
		}
		var answer metricAnswer
		if err := d.client.call(ctx, "DescribeMultiContainerGroupMetric", metricRequest{string(text)}, &answer); err != nil {
			return nil, err
		}
		used := map[string]usage{}
		for _, m := range answer.MonitorDatas {
			if n := len(m.Records); n > 0 {
				used[m.ContainerGroupID] = m.Records[n-1]
			}
		}
		for _, t := range page {
			all = append(all, podStats(t.Pod, used[t.Instance.status.ContainerGroupID]))
		}
	}
	return all, nil
}

// podStats returns the usage of a pod. A pod without a measurement has no values.
func podStats(pod *corev1.Pod, u usage) statsv1alpha1.PodStats {
	when, err := time.Parse(time.RFC3339, u.Timestamp)
	at := metav1.NewTime(when)
	out := service.PodStats(pod, func(c *statsv1alpha1.ContainerStats) {
		for _, k := range u.Containers {
			if err == nil && k.Name == c.Name {
				c.CPU, c.Memory = k.CPU.at(at), k.Memory.at(at)
			}
		}
	})
	if err != nil {
		return out
	}
	out.CPU, out.Memory = u.CPU.at(at), u.Memory.at(at)
	for _, i := range u.Network.Interfaces {
		s := statsv1alpha1.InterfaceStats{Name: i.Name, RxBytes: i.RxBytes, RxErrors: i.RxErrors, TxBytes: i.TxBytes, TxErrors: i.TxErrors}
		if out.Network == nil {
			out.Network = &statsv1alpha1.NetworkStats{Time: at, InterfaceStats: s}
		}
		out.Network.Interfaces = append(out.Network.Interfaces, s)
	}
	return out
}

func (u cpuUsage) at(t metav1.Time) *statsv1alpha1.CPUStats {
	return &statsv1alpha1.CPUStats{Time: t, UsageNanoCores: u.UsageNanoCores, UsageCoreNanoSeconds: u.UsageCoreNanoSeconds}
}

func (u memoryUsage) at(t metav1.Time) *statsv1alpha1.MemoryStats {
	return &statsv1alpha1.MemoryStats{Time: t, AvailableBytes: u.AvailableBytes, UsageBytes: u.UsageBytes, WorkingSetBytes: u.WorkingSet, RSSBytes: u.RSS}
}
