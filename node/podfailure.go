// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// fail records the failure of a pod, whatever the reason: no room, a rejection, another operating system, the
// active deadline, a loss at the backend, a drain. The failure is published when the pod has stopped.
func (w *podWorker) fail(key string, api *corev1.Pod, failure *lifecycle.PodFailure) {
	w.states.sync(key, api.UID, func(st syncWriter) { st.failure = failure })
	eventType := corev1.EventTypeWarning
	if failure.Normal {
		eventType = corev1.EventTypeNormal
	}
	w.recorder.Event(api, eventType, failure.Reason, failure.Message)
}

// admit reports whether the pod may be created. A pod for which the node has no room fails. So does a pod that
// needs a missing feature, if such pods are set to fail; otherwise it waits for a change.
func (w *podWorker) admit(ctx context.Context, key string, api *corev1.Pod) bool {
	unsupported := w.admission.checkSupported(api)
	if unsupported != "" && !w.failUnsupported {
		w.unsupported(key, api, unsupported)
		return false
	}
	failure := &lifecycle.PodFailure{Reason: lifecycle.ReasonUnsupported, Message: unsupported}
	if unsupported == "" {
		failure = w.admission.admit(ctx, key, api)
	}
	if failure == nil {
		return true
	}
	w.fail(key, api, failure)
	w.syncLane.Add(key)
	return false
}
