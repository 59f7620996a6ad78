// SPDX-License-Identifier: Apache-2.0

package node

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// failPod records the failure of a pod, for example because of a lack of resources, a rejection, the active deadline or a drain. The
// failure is published when the pod has stopped.
func (w *podWorker) failPod(key string, api *corev1.Pod, failure *lifecycle.PodFailure) {
	w.states.sync(key, api.UID, func(st syncWriter) { st.failure = failure })
	eventType := corev1.EventTypeWarning
	if failure.Normal {
		eventType = corev1.EventTypeNormal
	}
	w.recorder.Event(api, eventType, failure.Reason, failure.Message)
}
