// SPDX-License-Identifier: Apache-2.0

package node

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// effectiveStatus is the provider's status with the conditions of the program, and with Ready in
// the light of the last Ping and of a shutdown.
func (r *nodeReconciler) effectiveStatus() *corev1.NodeStatus {
	status := r.want.Status.DeepCopy()
	for _, c := range r.shown {
		status.Conditions = show(status.Conditions, c)
	}
	switch {
	case r.down:
		status.Conditions = show(status.Conditions, downCondition())
	case !r.ping.ok():
		status.Conditions = show(status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeReady, Status: corev1.ConditionFalse,
			Reason: r.ping.reason, Message: redact.Text(r.ping.err.Error()),
		})
	}
	return status
}
