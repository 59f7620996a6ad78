// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// The usage of a container without requests.
const (
	idleMilliCPU = 10
	idleMemory   = 32 << 20
)

// usage is the usage of a container, a pod or the node.
type usage struct {
	name     string
	started  time.Time
	milliCPU int64   // now
	cpu      float64 // CPU seconds since the start
	memory   int64   // bytes
}

// podUsage is the usage of a pod and its containers.
type podUsage struct {
	usage
	namespace, uid string
	containers     []usage
}

// podUsages returns the constant usage of the running pods: half of their requests.
func (p *provider) podUsages(now time.Time) []podUsage {
	p.mu.Lock()
	defer p.mu.Unlock()
	var pods []podUsage
	for name := range p.pods {
		s := p.findPod(name.Namespace, name.Name, now)
		if s == nil {
			continue
		}
		m := s.life.momentAt(now)
		if m.stage != running {
			continue
		}
		pod := podUsage{namespace: s.pod.Namespace, uid: string(s.pod.UID)}
		pod.name, pod.started = s.pod.Name, s.life.created
		for i := range s.pod.Spec.Containers {
			c := containerUsage(&s.pod.Spec.Containers[i], m, now)
			pod.containers = append(pod.containers, c)
			pod.add(c)
		}
		pods = append(pods, pod)
	}
	return pods
}

func containerUsage(c *corev1.Container, m moment, now time.Time) usage {
	u := usage{name: c.Name, started: m.started, milliCPU: idleMilliCPU, memory: idleMemory}
	if cpu := c.Resources.Requests.Cpu().MilliValue() / 2; cpu > 0 {
		u.milliCPU = cpu
	}
	if memory := c.Resources.Requests.Memory().Value() / 2; memory > 0 {
		u.memory = memory
	}
	u.cpu = now.Sub(m.started).Seconds() * float64(u.milliCPU) / 1000
	return u
}

func (u *usage) add(v usage) {
	u.milliCPU += v.milliCPU
	u.cpu += v.cpu
	u.memory += v.memory
}

// GetStatsSummary returns the usage of the node and its running pods, in the form of the kubelet's
// /stats/summary.
func (p *provider) GetStatsSummary(context.Context) (*statsv1alpha1.Summary, error) {
	now := time.Now()
	node := usage{name: p.in.NodeName, started: p.start}
	summary := &statsv1alpha1.Summary{Pods: []statsv1alpha1.PodStats{}}
	for _, pod := range p.podUsages(now) {
		node.add(pod.usage)
		stats := statsv1alpha1.PodStats{
			PodRef:    statsv1alpha1.PodReference{Name: pod.name, Namespace: pod.namespace, UID: pod.uid},
			StartTime: metav1.NewTime(pod.started),
			CPU:       pod.cpuStats(now),
			Memory:    pod.memoryStats(now),
		}
		for _, c := range pod.containers {
			stats.Containers = append(stats.Containers, statsv1alpha1.ContainerStats{
				Name: c.name, StartTime: metav1.NewTime(c.started), CPU: c.cpuStats(now), Memory: c.memoryStats(now),
			})
		}
		summary.Pods = append(summary.Pods, stats)
	}
	summary.Node = statsv1alpha1.NodeStats{
		NodeName: p.in.NodeName, StartTime: metav1.NewTime(p.start), CPU: node.cpuStats(now), Memory: node.memoryStats(now),
	}
	return summary, nil
}

func (u usage) cpuStats(now time.Time) *statsv1alpha1.CPUStats {
	nanoCores, nanoSeconds := uint64(u.milliCPU)*1e6, uint64(u.cpu*1e9)
	return &statsv1alpha1.CPUStats{Time: metav1.NewTime(now), UsageNanoCores: &nanoCores, UsageCoreNanoSeconds: &nanoSeconds}
}

func (u usage) memoryStats(now time.Time) *statsv1alpha1.MemoryStats {
	bytes := uint64(u.memory)
	return &statsv1alpha1.MemoryStats{Time: metav1.NewTime(now), UsageBytes: &bytes, WorkingSetBytes: &bytes, RSSBytes: &bytes}
}

// GetMetricsResource returns the usage of the node and its running pods, in the form of the kubelet's
// /metrics/resource. The labels come in the order namespace, pod, container, because some programs take the
// second label for the pod.
func (p *provider) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) {
	now := time.Now()
	pods := p.podUsages(now)
	slices.SortFunc(pods, func(a, b podUsage) int {
		return strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name)
	})
	f := resourceFamilies{now: now.UnixMilli()}
	node := usage{name: p.in.NodeName}
	for _, pod := range pods {
		node.add(pod.usage)
		labels := []*dto.LabelPair{labelPair("namespace", pod.namespace), labelPair("pod", pod.name)}
		f.add("pod", pod.usage, labels)
		for _, c := range pod.containers {
			labels := append(slices.Clone(labels), labelPair("container", c.name))
			f.add("container", c, labels)
			f.addGauge("container_start_time_seconds", "Start time of the container since unix epoch in seconds", float64(c.started.UnixNano())/1e9, labels)
		}
	}
	f.add("node", node, nil)
	f.addGauge("resource_scrape_error", "1 if there was an error while getting container metrics, 0 otherwise", 0, nil)
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
	f.addMetric(kind+"_cpu_usage_seconds_total", "Cumulative cpu time consumed by the "+kind+" in core-seconds", dto.MetricType_COUNTER, cpu)
	f.addGauge(kind+"_memory_working_set_bytes", "Current working set of the "+kind+" in bytes", float64(u.memory), labels)
}

func (f *resourceFamilies) addGauge(name, help string, value float64, labels []*dto.LabelPair) {
	f.addMetric(name, help, dto.MetricType_GAUGE, &dto.Metric{Label: labels, Gauge: &dto.Gauge{Value: &value}, TimestampMs: &f.now})
}

func (f *resourceFamilies) addMetric(name, help string, kind dto.MetricType, m *dto.Metric) {
	i := slices.IndexFunc(f.families, func(family *dto.MetricFamily) bool { return family.GetName() == name })
	if i < 0 {
		i = len(f.families)
		f.families = append(f.families, &dto.MetricFamily{Name: &name, Help: &help, Type: &kind})
	}
	f.families[i].Metric = append(f.families[i].Metric, m)
}

func labelPair(name, value string) *dto.LabelPair {
	return &dto.LabelPair{Name: &name, Value: &value}
}
