// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// effectiveStatus returns the provider's status with the conditions of the program. The Ready condition follows from the last Ping, which
// pinger reports to takePing, and from a shutdown. The result shares everything but the conditions with the provider's status.
func (r *nodeReconciler) effectiveStatus() *corev1.NodeStatus {
	status := &corev1.NodeStatus{}
	*status = r.want.Status
	status.Conditions = slices.Clone(status.Conditions)
	for _, c := range r.shown {
		status.Conditions = setCondition(status.Conditions, c)
	}
	switch {
	case r.down:
		status.Conditions = setCondition(status.Conditions, downCondition())
	case !r.ping.ok():
		status.Conditions = setCondition(status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeReady, Status: corev1.ConditionFalse,
			Reason: r.ping.reason, Message: redact.Text(r.ping.err.Error()),
		})
	}
	r.isReady.Set(metrics.Bool(slices.ContainsFunc(status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})))
	return status
}

// setCondition adds c to conditions, or replaces the condition of its type.
func setCondition(conditions []corev1.NodeCondition, c corev1.NodeCondition) []corev1.NodeCondition {
	for i := range conditions {
		if conditions[i].Type == c.Type {
			conditions[i] = c
			return conditions
		}
	}
	return append(conditions, c)
}

// downCondition returns the Ready condition of a node that shuts down, with a kubelet's reason and message.
func downCondition() corev1.NodeCondition {
	return corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionFalse,
		Reason: "KubeletNotReady", Message: "node is shutting down",
	}
}
