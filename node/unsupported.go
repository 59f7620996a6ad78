// SPDX-License-Identifier: Apache-2.0

package node

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// unsupported tells why a pod waits. It is looked at again when it changes; nothing else
// could make a difference.
func (w *podWorker) unsupported(key string, api *corev1.Pod, message string) {
	news := false
	w.states.sync(key, api.UID, func(st syncWriter) {
		if news = st.syncErr == nil || st.syncErr.Message != message; news {
			st.clearError()
			st.syncErr = &lifecycle.SyncError{Reason: lifecycle.ReasonUnsupported, Message: message, WaitingReason: lifecycle.ReasonUnsupported}
		}
	})
	if news {
		w.recorder.Event(api, corev1.EventTypeWarning, lifecycle.ReasonUnsupported, message)
		w.statusLane.Add(key)
	}
}
