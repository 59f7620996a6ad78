// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1listers "k8s.io/client-go/listers/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// statsTimeout bounds the time that /metrics waits for the provider: by default Prometheus aborts a scrape after 10 s, and would lose the
// whole page.
const statsTimeout = 5 * time.Second

// metricsHandler serves the metrics of this library for all nodes of the process, the metrics of the process, and the gatherers more.
func metricsHandler(more ...prometheus.Gatherer) http.Handler {
	gatherers := append(prometheus.Gatherers{metrics.Registry, metrics.Process}, more...)
	return promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// nodeMetrics serves /metrics of a node.
type nodeMetrics struct {
	node    string
	pods    corev1listers.PodLister // of the node
	summary api.PodStatsSummaryHandlerFunc
}

// ServeHTTP serves the metrics of the node beside the metrics of the process.
func (m nodeMetrics) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	own := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return m.gather(req.Context()) })
	metricsHandler(own).ServeHTTP(w, req)
}

// gather returns the metrics of this node only, under a kubelet's names.
func (m nodeMetrics) gather(ctx context.Context) ([]*dto.MetricFamily, error) {
	pods, err := m.pods.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", m.node, err)
	}
	families := []*dto.MetricFamily{
		gauges("kubelet_node_name", "The name of the node. The value is always 1.", sample{1, []string{"node", m.node}}),
		runningContainers(pods),
	}
	if !claimsVolumes(pods) { // statistics may need requests to a backend
		return families, nil
	}
	var volumes []*dto.MetricFamily
	stats := providercall.Caller{Deadline: statsTimeout}
	err = stats.Do(ctx, "GetStatsSummary", func(ctx context.Context) (err error) {
		volumes, err = volumeStats(ctx, m.summary)
		return err
	})
	if err != nil {
		log.G(ctx).WithError(err).Debug("Metrics were served without the statistics of volumes")
	}
	return append(families, volumes...), nil
}

// sample is a metric value with the names and values of its labels.
type sample struct {
	value  float64
	labels []string
}

func gauges(name, help string, samples ...sample) *dto.MetricFamily {
	f := &dto.MetricFamily{Name: &name, Help: &help, Type: dto.MetricType_GAUGE.Enum()}
	for _, s := range samples {
		m := &dto.Metric{Gauge: &dto.Gauge{Value: &s.value}}
		for i := 0; i+1 < len(s.labels); i += 2 {
			m.Label = append(m.Label, &dto.LabelPair{Name: &s.labels[i], Value: &s.labels[i+1]})
		}
		f.Metric = append(f.Metric, m)
	}
	return f
}

// runningContainers counts containers by state, according to the pod statuses.
func runningContainers(pods []*corev1.Pod) *dto.MetricFamily {
	var running, exited float64
	for _, pod := range pods {
		for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses} {
			for i := range list {
				switch state := list[i].State; {
				case state.Running != nil:
					running++
				case state.Terminated != nil:
					exited++
				}
			}
		}
	}
	return gauges("kubelet_running_containers", "Number of containers by their state.",
		sample{exited, []string{"container_state", "exited"}}, sample{running, []string{"container_state", "running"}})
}

// claimsVolumes reports whether a pod has a volume from a claim.
func claimsVolumes(pods []*corev1.Pod) bool {
	for _, pod := range pods {
		for i := range pod.Spec.Volumes {
			if v := &pod.Spec.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
				return true
			}
		}
	}
	return false
}

// volumeStats returns the statistics of claimed volumes, if the provider reports them. Pods that share a claim have the same volume.
func volumeStats(ctx context.Context, get api.PodStatsSummaryHandlerFunc) ([]*dto.MetricFamily, error) {
	summary, err := get(ctx)
	if err != nil || summary == nil {
		return nil, err
	}
	names := []string{"available_bytes", "capacity_bytes", "used_bytes", "inodes", "inodes_free", "inodes_used"}
	helps := []string{"Free bytes", "Size in bytes", "Used bytes", "Number of inodes", "Number of free inodes", "Number of used inodes"}
	samples := make([][]sample, len(names))
	seen := map[string]bool{}
	for i := range summary.Pods {
		for _, v := range summary.Pods[i].VolumeStats {
			if v.PVCRef == nil || seen[v.PVCRef.Namespace+"/"+v.PVCRef.Name] {
				continue
			}
			seen[v.PVCRef.Namespace+"/"+v.PVCRef.Name] = true
			for j, value := range []*uint64{v.AvailableBytes, v.CapacityBytes, v.UsedBytes, v.Inodes, v.InodesFree, v.InodesUsed} {
				if value != nil {
					samples[j] = append(samples[j], sample{float64(*value), []string{"namespace", v.PVCRef.Namespace, "persistentvolumeclaim", v.PVCRef.Name}})
				}
			}
		}
	}
	var families []*dto.MetricFamily
	for j, name := range names {
		if len(samples[j]) > 0 {
			families = append(families, gauges("kubelet_volume_stats_"+name, helps[j]+" of a claimed volume.", samples[j]...))
		}
	}
	return families, nil
}
