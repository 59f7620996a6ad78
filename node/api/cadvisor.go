// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"
)

func noMetrics(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }

// cadvisorMetrics returns the statistics under the names and labels of cAdvisor, for which dashboards and rules
// are written. Values that a provider does not measure are left out.
func (p PodHandlerConfig) cadvisorMetrics(ctx context.Context) ([]*dto.MetricFamily, error) {
	summary, err := p.GetStatsSummary(ctx)
	if err != nil {
		return nil, fmt.Errorf("get the stats summary: %w", err)
	}
	if summary == nil {
		return nil, nil
	}
	var c cadvisor
	node := cgroup{id: "/"}
	c.usage(node, summary.Node.CPU, summary.Node.Memory)
	c.swap(node, summary.Node.Swap)
	c.network(node, summary.Node.Network)
	c.filesystem(node, summary.Node.Fs)
	c.started(node, summary.Node.StartTime)
	for i := range summary.Pods {
		c.pod(&summary.Pods[i], p.podOf(summary.Pods[i].PodRef))
	}
	return c.families, nil
}

// podOf returns the pod, or nil if it is unknown.
func (p PodHandlerConfig) podOf(ref statsv1alpha1.PodReference) *corev1.Pod {
	if p.GetPod == nil {
		return nil
	}
	pod, err := p.GetPod(ref.Namespace, ref.Name)
	if err != nil || pod == nil || string(pod.UID) != ref.UID {
		return nil
	}
	return pod
}

// cgroup identifies the subject of a series by cAdvisor's labels. The node is the root, and a pod has no container.
type cgroup struct{ id, namespace, pod, container, image, name string }

// cadvisor collects metrics; families keep the order in which their names first occur.
type cadvisor struct{ families []*dto.MetricFamily }

func (c *cadvisor) pod(stats *statsv1alpha1.PodStats, pod *corev1.Pod) {
	group := cgroup{id: "/kubepods/pod" + stats.PodRef.UID, namespace: stats.PodRef.Namespace, pod: stats.PodRef.Name}
	c.usage(group, stats.CPU, stats.Memory)
	c.swap(group, stats.Swap)
	c.network(group, stats.Network)
	for i := range stats.Containers {
		container := &stats.Containers[i]
		own := group
		own.container = container.Name
		own.id += "/" + container.Name
		own.image, own.name = imageOf(pod, container.Name)
		c.usage(own, container.CPU, container.Memory)
		c.swap(own, container.Swap)
		c.filesystem(own, container.Rootfs)
		c.started(own, container.StartTime)
	}
}

// imageOf returns the image of a container and its ID at the backend, from the pod.
func imageOf(pod *corev1.Pod, container string) (image, id string) {
	if pod == nil {
		return "", ""
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == container {
			image = c.Image
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if status.Name == container {
			_, id, _ = strings.Cut(status.ContainerID, "://")
		}
	}
	return image, id
}

func (c *cadvisor) usage(g cgroup, cpu *statsv1alpha1.CPUStats, memory *statsv1alpha1.MemoryStats) {
	if cpu != nil {
		if used := cpu.UsageCoreNanoSeconds; used != nil {
			c.add("container_cpu_usage_seconds_total", dto.MetricType_COUNTER, g, cpu.Time, float64(*used)/float64(time.Second), "cpu", "total")
		}
	}
	if memory != nil {
		c.gauge("container_memory_usage_bytes", g, memory.Time, memory.UsageBytes)
		c.gauge("container_memory_working_set_bytes", g, memory.Time, memory.WorkingSetBytes)
		c.gauge("container_memory_rss", g, memory.Time, memory.RSSBytes)
	}
}

func (c *cadvisor) swap(g cgroup, swap *statsv1alpha1.SwapStats) {
	if swap != nil {
		c.gauge("container_memory_swap", g, swap.Time, swap.SwapUsageBytes)
	}
}

func (c *cadvisor) network(g cgroup, network *statsv1alpha1.NetworkStats) {
	if network == nil {
		return
	}
	interfaces := network.Interfaces
	if len(interfaces) == 0 {
		interfaces = []statsv1alpha1.InterfaceStats{network.InterfaceStats}
	}
	for _, i := range interfaces {
		c.counter("container_network_receive_bytes_total", g, network.Time, i.RxBytes, "interface", i.Name)
		c.counter("container_network_receive_errors_total", g, network.Time, i.RxErrors, "interface", i.Name)
		c.counter("container_network_transmit_bytes_total", g, network.Time, i.TxBytes, "interface", i.Name)
		c.counter("container_network_transmit_errors_total", g, network.Time, i.TxErrors, "interface", i.Name)
	}
}

func (c *cadvisor) filesystem(g cgroup, fs *statsv1alpha1.FsStats) {
	if fs == nil {
		return
	}
	c.gauge("container_fs_usage_bytes", g, fs.Time, fs.UsedBytes)
	c.gauge("container_fs_limit_bytes", g, fs.Time, fs.CapacityBytes)
}

func (c *cadvisor) started(g cgroup, start metav1.Time) {
	if !start.IsZero() {
		c.add("container_start_time_seconds", dto.MetricType_GAUGE, g, metav1.Time{}, float64(start.Unix()))
	}
}

func (c *cadvisor) gauge(name string, g cgroup, at metav1.Time, value *uint64, more ...string) {
	if value != nil {
		c.add(name, dto.MetricType_GAUGE, g, at, float64(*value), more...)
	}
}

func (c *cadvisor) counter(name string, g cgroup, at metav1.Time, value *uint64, more ...string) {
	if value != nil {
		c.add(name, dto.MetricType_COUNTER, g, at, float64(*value), more...)
	}
}

// add adds one series; more is the name and the value of an additional label.
func (c *cadvisor) add(name string, kind dto.MetricType, g cgroup, at metav1.Time, value float64, more ...string) {
	metric := &dto.Metric{}
	if !at.IsZero() {
		metric.TimestampMs = ptr.To(at.UnixMilli())
	}
	if kind == dto.MetricType_COUNTER {
		metric.Counter = &dto.Counter{Value: &value}
	} else {
		metric.Gauge = &dto.Gauge{Value: &value}
	}
	labels := append([]string{"container", g.container, "id", g.id, "image", g.image, "name", g.name, "namespace", g.namespace, "pod", g.pod}, more...)
	for i := 0; i+1 < len(labels); i += 2 {
		metric.Label = append(metric.Label, &dto.LabelPair{Name: &labels[i], Value: &labels[i+1]})
	}
	for _, family := range c.families {
		if family.GetName() == name {
			family.Metric = append(family.Metric, metric)
			return
		}
	}
	c.families = append(c.families, &dto.MetricFamily{Name: &name, Type: &kind, Metric: []*dto.Metric{metric}})
}
