// SPDX-License-Identifier: Apache-2.0

// Package nodehealth has the conditions of a node whose provider says by Ping when it is not well.
//
// The promise: a node with them is Ready as soon as it is registered, and Kubernetes is shown that it is not while Ping fails.
//
// What surprises: a provider that implements node.NodeProvider and leaves them out has a node that is never Ready.
package nodehealth

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Well gives n the conditions of a node that is well, in the place of those that it has. reason is that of each.
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
