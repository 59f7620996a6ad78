// SPDX-License-Identifier: Apache-2.0

package node

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// effectiveStatus is the provider's status, with Ready in the light of the last Ping
// and of a shutdown.
func (k *nodeKeeper) effectiveStatus() *corev1.NodeStatus {
	status := k.want.Status.DeepCopy()
	var unready corev1.NodeCondition
	switch {
	case k.down:
		unready = downCondition()
	case k.ping.ok():
		return status
	default:
		unready = corev1.NodeCondition{
			Type: corev1.NodeReady, Status: corev1.ConditionFalse,
			Reason: k.ping.reason, Message: redact.Text(k.ping.err.Error()),
		}
	}
	for i := range status.Conditions {
		if status.Conditions[i].Type == corev1.NodeReady {
			status.Conditions[i] = unready
			return status
		}
	}
	status.Conditions = append(status.Conditions, unready)
	return status
}
