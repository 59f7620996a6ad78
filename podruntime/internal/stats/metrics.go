// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"context"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// Metrics returns the metrics of a kubelet's /metrics/resource. If the runtime does not answer, they report the error and the usage of the machine.
// The labels are in the order namespace, pod, container, because some programs expect the pod as the second label.
func (s *Stats) Metrics(ctx context.Context) ([]*dto.MetricFamily, error) {
	got, err := s.measureAll(ctx)
	if err != nil {
		return nil, err
	}
	var f families
	node := got.summary.Node
	f.addUsage("node", node.CPU, node.Memory, node.Swap)
	for i := range got.summary.Pods {
		f.addPod(&got.summary.Pods[i])
	}
	failed := 0.0
	if got.err != nil {
		log.G(ctx).WithError(got.err).Warn("metrics of pods are missing")
		failed = 1
	}
	const help = "1 if there was an error while getting container metrics, 0 otherwise"
	f.addGauge("scrape_error", help, metav1.Time{}, &failed)
	f.addGauge("resource_scrape_error", help, metav1.Time{}, &failed)
	return f, nil
}

// families collects metrics by name.
type families []*dto.MetricFamily

func (f *families) addPod(pod *statsv1alpha1.PodStats) {
	labels := []*dto.LabelPair{labelPair("namespace", pod.PodRef.Namespace), labelPair("pod", pod.PodRef.Name)}
	for i := range pod.Containers {
		c := &pod.Containers[i]
		own := append(slices.Clone(labels), labelPair("container", c.Name))
		started := float64(c.StartTime.UnixNano()) / float64(time.Second)
		f.addGauge("container_start_time_seconds", "Start time of the container since unix epoch in seconds", metav1.Time{}, &started, own...)
		f.addUsage("container", c.CPU, c.Memory, c.Swap, own...)
		if c.Swap != nil && c.Swap.SwapAvailableBytes != nil {
			limit := float64(*c.Swap.SwapAvailableBytes)
			if c.Swap.SwapUsageBytes != nil {
				limit += float64(*c.Swap.SwapUsageBytes)
			}
			f.addGauge("container_swap_limit_bytes", "Current amount of the container swap limit in bytes. Reported only on non-windows systems", c.Swap.Time, &limit, own...)
		}
	}
	f.addUsage("pod", pod.CPU, pod.Memory, pod.Swap, labels...)
}

// addUsage adds the known CPU, memory and swap usage of an object of the given kind.
func (f *families) addUsage(kind string, cpu *statsv1alpha1.CPUStats, memory *statsv1alpha1.MemoryStats, swap *statsv1alpha1.SwapStats, labels ...*dto.LabelPair) {
	if cpu != nil && cpu.UsageCoreNanoSeconds != nil {
		seconds := float64(*cpu.UsageCoreNanoSeconds) / float64(time.Second)
		f.addMetric(kind+"_cpu_usage_seconds_total", "Cumulative cpu time consumed by the "+kind+" in core-seconds", dto.MetricType_COUNTER,
			cpu.Time, &dto.Metric{Label: labels, Counter: &dto.Counter{Value: &seconds}})
	}
	if memory != nil && memory.WorkingSetBytes != nil {
		bytes := float64(*memory.WorkingSetBytes)
		f.addGauge(kind+"_memory_working_set_bytes", "Current working set of the "+kind+" in bytes", memory.Time, &bytes, labels...)
	}
	if swap != nil && swap.SwapUsageBytes != nil {
		bytes := float64(*swap.SwapUsageBytes)
		f.addGauge(kind+"_swap_usage_bytes", "Current swap usage of the "+kind+" in bytes. Reported only on non-windows systems", swap.Time, &bytes, labels...)
	}
}

func (f *families) addGauge(name, help string, at metav1.Time, value *float64, labels ...*dto.LabelPair) {
	f.addMetric(name, help, dto.MetricType_GAUGE, at, &dto.Metric{Label: labels, Gauge: &dto.Gauge{Value: value}})
}

func (f *families) addMetric(name, help string, kind dto.MetricType, at metav1.Time, m *dto.Metric) {
	if !at.IsZero() {
		milliseconds := at.UnixMilli()
		m.TimestampMs = &milliseconds
	}
	i := slices.IndexFunc(*f, func(family *dto.MetricFamily) bool { return family.GetName() == name })
	if i < 0 {
		i = len(*f)
		*f = append(*f, &dto.MetricFamily{Name: &name, Help: &help, Type: &kind})
	}
	(*f)[i].Metric = append((*f)[i].Metric, m)
}

func labelPair(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }
