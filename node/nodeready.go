// SPDX-License-Identifier: Apache-2.0

package node

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// effectiveStatus is the provider's status with the conditions of the program, and with Ready in
// the light of the last Ping and of a shutdown.
func (k *nodeReconciler) effectiveStatus() *corev1.NodeStatus {
	status := k.want.Status.DeepCopy()
	for _, c := range k.shown {
		status.Conditions = show(status.Conditions, c)
	}
	switch {
	case k.down:
		status.Conditions = show(status.Conditions, downCondition())
	case !k.ping.ok():
		status.Conditions = show(status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeReady, Status: corev1.ConditionFalse,
			Reason: k.ping.reason, Message: redact.Text(k.ping.err.Error()),
		})
	}
	return status
}
