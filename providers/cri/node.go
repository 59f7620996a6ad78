// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConfigureNode writes into n what the machine offers, or what the configuration says of it, and that
// the node has no trouble. While the container runtime has some, Ping says so, and that counts.
func (p *Provider) ConfigureNode(ctx context.Context, n *corev1.Node) {
	p.Runtime.ConfigureNode(ctx, n)
	p.configured(n)
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Status == "" {
			*c = healthy(c.Type, time.Now())
		}
	}
}

// healthy is a condition that says that all is well, in a kubelet's words.
func healthy(kind corev1.NodeConditionType, now time.Time) corev1.NodeCondition {
	words := map[corev1.NodeConditionType][2]string{
		corev1.NodeReady:              {"KubeletReady", "kubelet is posting ready status"},
		corev1.NodeMemoryPressure:     {"KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
		corev1.NodeDiskPressure:       {"KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
		corev1.NodePIDPressure:        {"KubeletHasSufficientPID", "kubelet has sufficient PID available"},
		corev1.NodeNetworkUnavailable: {"RuntimeNetwork", "the container runtime makes the network of pods"},
	}[kind]
	c := corev1.NodeCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: words[0], Message: words[1],
		LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
	}
	if kind == corev1.NodeReady {
		c.Status = corev1.ConditionTrue
	}
	return c
}

// NotifyNodeStatus implements node.NodeProvider.
func (p *Provider) NotifyNodeStatus(ctx context.Context, notify func(*corev1.Node)) {
	p.Runtime.NotifyNodeStatus(ctx, func(n *corev1.Node) {
		n = n.DeepCopy()
		p.configured(n)
		notify(n)
	})
}

// configured overrides what the configuration names.
func (p *Provider) configured(n *corev1.Node) {
	if len(p.capacity) == 0 {
		return
	}
	for _, list := range []*corev1.ResourceList{&n.Status.Capacity, &n.Status.Allocatable} {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		maps.Copy(*list, p.capacity)
	}
}
