// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// maxConditionMessage limits, in bytes, what a provider's error puts into the node.
const maxConditionMessage = 1024

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
			Reason: k.ping.reason, Message: shorten(k.ping.err.Error(), maxConditionMessage),
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

// shorten cuts text to at most limit bytes without splitting a character.
func shorten(text string, limit int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= limit {
		return text
	}
	const mark = "..."
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}
