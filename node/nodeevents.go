// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Reasons of the events of a node. All but eventStandby are the reasons of a kubelet.
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

// tellRole records whether this process acts for the node, if that has changed.
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

// tellReady records that the API server has the node's condition Ready in after, if the condition had another
// status in before. before is nil for a new node.
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

// readyOf returns the condition Ready, or nil.
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
