// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"context"
	"fmt"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Ping decides whether the node is Ready.
func (p *provider) Ping(ctx context.Context) error { return p.service.Ping(ctx) }

// NotifyNodeStatus has nothing to tell: the node does not change.
func (*provider) NotifyNodeStatus(context.Context, func(*corev1.Node)) {}

// ConfigureNode writes what the node offers, and that it is well: Ping says when it is not.
//
// FILL(capacity): ask your service what the account may use, or leave it to the configuration.
func (p *provider) ConfigureNode(_ context.Context, n *corev1.Node) {
	c := p.config.Capacity
	n.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: c.CPU, corev1.ResourceMemory: c.Memory, corev1.ResourceEphemeralStorage: c.EphemeralStorage, corev1.ResourcePods: c.Pods,
	}
	n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	now := metav1.NewTime(time.Now())
	n.Status.Conditions = nil
	for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable} {
		condition := corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: "Skeleton", LastHeartbeatTime: now, LastTransitionTime: now}
		if kind == corev1.NodeReady {
			condition.Status = corev1.ConditionTrue
		}
		n.Status.Conditions = append(n.Status.Conditions, condition)
	}
}

// GetStatsSummary returns the pods that run and what they use.
//
// FILL(stats): put in what your service measures. Without numbers kubectl top has nothing to show.
func (p *provider) GetStatsSummary(ctx context.Context) (*statsv1alpha1.Summary, error) {
	groups, err := p.service.List(ctx, p.node)
	if err != nil {
		return nil, fmt.Errorf("look what pods use: %w", err)
	}
	now := metav1.NewTime(time.Now())
	s := &statsv1alpha1.Summary{Node: statsv1alpha1.NodeStats{NodeName: p.node, StartTime: now}}
	for _, g := range groups {
		pod := statsv1alpha1.PodStats{
			PodRef: statsv1alpha1.PodReference{Name: g.Name, Namespace: g.Namespace, UID: string(g.ID)}, StartTime: metav1.NewTime(g.Created),
		}
		for _, c := range g.Containers {
			if c.State == stateRunning {
				pod.Containers = append(pod.Containers, statsv1alpha1.ContainerStats{Name: c.Name, StartTime: metav1.NewTime(c.Run.Started)})
			}
		}
		if len(pod.Containers) > 0 {
			s.Pods = append(s.Pods, pod)
		}
	}
	return s, nil
}

// GetMetricsResource returns what metrics-server reads: nothing, as long as nothing is measured.
func (*provider) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }
