// SPDX-License-Identifier: Apache-2.0

// Package nodehealth sets the conditions of a healthy node, for a provider that reports problems through its Ping method.
//
// The guarantee: a node with these conditions is Ready as soon as it is registered, and not Ready while Ping fails.
//
// Note: without them, the node of a provider that implements node.NodeProvider is never Ready.
package nodehealth

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Well replaces the conditions of n with the conditions of a healthy node. Each condition has the given reason.
func Well(n *corev1.Node, reason string) {
	now := metav1.Now()
	n.Status.Conditions = nil
	for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable} {
		condition := corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now}
		if kind == corev1.NodeReady {
			condition.Status = corev1.ConditionTrue
		}
		n.Status.Conditions = append(n.Status.Conditions, condition)
	}
}
