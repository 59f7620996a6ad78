// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Reasons of the events of a node. All except eventStandby are a kubelet's reasons.
const (
	eventStarting     = "Starting"
	eventStandby      = "Standby"
	eventNodeReady    = "NodeReady"
	eventNodeNotReady = "NodeNotReady"
)

func (r *nodeReconciler) recordEvent(kind, reason, message string) {
	if r.recorder != nil {
		r.recorder.Event(nodeRef(r.want.Name), kind, reason, message)
	}
}

// tellRole records an event if this process has begun or ceased to act for the node.
func (r *nodeReconciler) tellRole() {
	role, message := eventStarting, "This process acts for the node."
	if !r.ours {
		role, message = eventStandby, "Another process acts for the node, and this process waits for its end."
		if holder, waits := r.standsBy(); waits {
			message = fmt.Sprintf("The %s acts for the node, and this process waits for its end.", holder)
		}
	}
	if r.role != role {
		r.role = role
		r.recordEvent(corev1.EventTypeNormal, role, message)
	}
}

// tellReady records an event if the status of the Ready condition differs between before and after. before is nil for a new node.
func (r *nodeReconciler) tellReady(before, after *corev1.NodeStatus) {
	was, is := readyOf(before), readyOf(after)
	switch {
	case is == nil, was != nil && was.Status == is.Status:
	case is.Status == corev1.ConditionTrue:
		r.recordEvent(corev1.EventTypeNormal, eventNodeReady, fmt.Sprintf("Node %s status is now: NodeReady", r.want.Name))
	case was != nil:
		r.recordEvent(corev1.EventTypeWarning, eventNodeNotReady, fmt.Sprintf("Node %s status is now: NodeNotReady: %s: %s", r.want.Name, is.Reason, is.Message))
	}
}

// readyOf returns the Ready condition, or nil.
func readyOf(status *corev1.NodeStatus) *corev1.NodeCondition {
	if status == nil {
		return nil
	}
	for i := range status.Conditions {
		if status.Conditions[i].Type == corev1.NodeReady {
			return &status.Conditions[i]
		}
	}
	return nil
}
