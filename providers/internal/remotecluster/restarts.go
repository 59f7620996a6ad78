// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// missingRestarts returns the restarts in the home status that the remote pod does not count, because it was
// recreated.
func missingRestarts(home *corev1.PodStatus, remote *corev1.Pod) map[string]int32 {
	counted := restartsBefore(remote)
	s := Status(remote, byHome)
	out := map[string]int32{}
	for _, h := range slices.Concat(home.InitContainerStatuses, home.ContainerStatuses) {
		if h.ContainerID == "" && h.RestartCount == 0 {
			continue // the container never ran
		}
		var now corev1.ContainerStatus
		for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
			if c.Name == h.Name {
				now = c
			}
		}
		lost := h.RestartCount - now.RestartCount
		first := now.RestartCount == counted[h.Name] // the first start in this pod
		began := startOf(&h)
		if first && h.ContainerID != "" && h.ContainerID != now.ContainerID || !began.IsZero() && began.Before(&remote.CreationTimestamp) {
			lost = h.RestartCount + 1 - counted[h.Name] // the home status is about an earlier pod
		}
		if lost > 0 {
			out[h.Name] = lost
		}
	}
	return out
}

func startOf(c *corev1.ContainerStatus) *metav1.Time {
	switch {
	case c.State.Running != nil:
		return &c.State.Running.StartedAt
	case c.State.Terminated != nil:
		return &c.State.Terminated.StartedAt
	case c.LastTerminationState.Terminated != nil:
		return &c.LastTerminationState.Terminated.StartedAt
	}
	return nil
}

// withRestarts returns the pod with the restarts of earlier runs in annotationRestarts.
func (w *run) withRestarts() *corev1.Pod {
	if len(w.before) == 0 {
		return w.pod
	}
	pod := w.pod.DeepCopy()
	all := restartsBefore(pod)
	if all == nil {
		all = map[string]int32{}
	}
	for name, n := range w.before {
		all[name] += n
	}
	text, _ := json.Marshal(all) // marshaling numbers never fails
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[annotationRestarts] = string(text)
	return pod
}
