// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// GetMetricsResource returns what the node and its running pods use, as the
// kubelet's /metrics/resource. The labels come in the order namespace, pod,
// container: programs exist that take the second one for the pod.
func (p *provider) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) {
	now := time.Now()
	pods := p.usages(now)
	slices.SortFunc(pods, func(a, b podUsage) int {
		return strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name)
	})
	f := resourceFamilies{now: now.UnixMilli()}
	node := usage{name: p.in.NodeName}
	for _, pod := range pods {
		node.add(pod.usage)
		labels := []*dto.LabelPair{label("namespace", pod.namespace), label("pod", pod.name)}
		f.add("pod", pod.usage, labels)
		for _, c := range pod.containers {
			labels := append(slices.Clone(labels), label("container", c.name))
			f.add("container", c, labels)
			f.gauge("container_start_time_seconds", "Start time of the container since unix epoch in seconds", float64(c.started.UnixNano())/1e9, labels)
		}
	}
	f.add("node", node, nil)
	f.gauge("resource_scrape_error", "1 if there was an error while getting container metrics, 0 otherwise", 0, nil)
	return f.families, nil
}

// resourceFamilies collects metrics under their names.
type resourceFamilies struct {
	now      int64 // milliseconds
	families []*dto.MetricFamily
}

// add adds the CPU and memory of one thing of the given kind.
func (f *resourceFamilies) add(kind string, u usage, labels []*dto.LabelPair) {
	cpu := &dto.Metric{Label: labels, Counter: &dto.Counter{Value: &u.cpu}, TimestampMs: &f.now}
	f.metric(kind+"_cpu_usage_seconds_total", "Cumulative cpu time consumed by the "+kind+" in core-seconds", dto.MetricType_COUNTER, cpu)
	f.gauge(kind+"_memory_working_set_bytes", "Current working set of the "+kind+" in bytes", float64(u.memory), labels)
}

func (f *resourceFamilies) gauge(name, help string, value float64, labels []*dto.LabelPair) {
	f.metric(name, help, dto.MetricType_GAUGE, &dto.Metric{Label: labels, Gauge: &dto.Gauge{Value: &value}, TimestampMs: &f.now})
}

func (f *resourceFamilies) metric(name, help string, kind dto.MetricType, m *dto.Metric) {
	i := slices.IndexFunc(f.families, func(family *dto.MetricFamily) bool { return family.GetName() == name })
	if i < 0 {
		i = len(f.families)
		f.families = append(f.families, &dto.MetricFamily{Name: &name, Help: &help, Type: &kind})
	}
	f.families[i].Metric = append(f.families[i].Metric, m)
}

func label(name, value string) *dto.LabelPair {
	return &dto.LabelPair{Name: &name, Value: &value}
}
