// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"
)

// podMetrics is the usage of a pod in the metrics API.
type podMetrics struct {
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Timestamp  metav1.Time       `json:"timestamp"`
	Containers []struct {
		Name  string              `json:"name"`
		Usage corev1.ResourceList `json:"usage"`
	} `json:"containers"`
}

// GetStatsSummary returns the running pods, with their usage if the remote cluster has the metrics API.
func (c *Cluster) GetStatsSummary(ctx context.Context) (*statsv1alpha1.Summary, error) {
	if err := c.awaitReady(ctx); err != nil {
		return nil, fmt.Errorf("look what pods use: %w", err)
	}
	used := c.podUsage(ctx)
	now := metav1.NewTime(time.Now())
	s := &statsv1alpha1.Summary{Node: statsv1alpha1.NodeStats{NodeName: c.config.Home.Node, StartTime: now}}
	for _, remote := range c.everyPod() {
		at, uid := homeOf(remote)
		p := statsv1alpha1.PodStats{
			PodRef: statsv1alpha1.PodReference{Name: at.Name, Namespace: at.Namespace, UID: string(uid)}, StartTime: remote.CreationTimestamp,
		}
		for _, container := range remote.Status.ContainerStatuses {
			if container.State.Running == nil {
				continue
			}
			stats := statsv1alpha1.ContainerStats{Name: container.Name, StartTime: container.State.Running.StartedAt}
			if u, ok := used[remote.Namespace+"/"+remote.Name+"/"+container.Name]; ok {
				stats.CPU = &statsv1alpha1.CPUStats{Time: u.at, UsageNanoCores: ptr.To(nanoUnits(u.cpu))}
				stats.Memory = &statsv1alpha1.MemoryStats{Time: u.at, WorkingSetBytes: ptr.To(uint64(u.memory.Value()))}
			}
			p.Containers = append(p.Containers, stats)
		}
		if len(p.Containers) > 0 {
			s.Pods = append(s.Pods, p)
		}
	}
	return s, nil
}

// used is the resource usage of a container.
type used struct {
	at          metav1.Time
	cpu, memory resource.Quantity
}

func nanoUnits(q resource.Quantity) uint64 { return uint64(q.ScaledValue(resource.Nano)) }

// podUsage returns the usage from the metrics API, by namespace, pod and container. It returns nil without a
// metrics API.
func (c *Cluster) podUsage(ctx context.Context) map[string]used {
	path := "/apis/metrics.k8s.io/v1beta1/pods"
	if c.config.Namespace != "" {
		path = "/apis/metrics.k8s.io/v1beta1/namespaces/" + c.config.Namespace + "/pods"
	}
	data, err := c.client.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", runtime.ContentTypeJSON).
		Param("labelSelector", c.config.Home.Selector()).DoRaw(ctx)
	var list struct {
		Items []podMetrics `json:"items"`
	}
	if err != nil || json.Unmarshal(data, &list) != nil {
		return nil
	}
	out := map[string]used{}
	for _, item := range list.Items {
		for _, k := range item.Containers {
			out[item.Metadata.Namespace+"/"+item.Metadata.Name+"/"+k.Name] = used{item.Timestamp, k.Usage[corev1.ResourceCPU], k.Usage[corev1.ResourceMemory]}
		}
	}
	return out
}

// GetMetricsResource returns nothing: the metrics API has no counters, from which metrics-server could compute
// rates.
func (*Cluster) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }
