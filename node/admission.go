// SPDX-License-Identifier: Apache-2.0

package node

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// admit reserves room for a pod that has not been at the backend, as a
// kubelet does, or returns why the node has none. Somebody bound it past the scheduler, or the scheduler
// knew less. Only a provider that declares what it has is taken at its word about capacity.
func (c *PodController) admit(key string, api *corev1.Pod) *lifecycle.PodFailure {
	if c.declared == nil {
		return nil
	}
	if st := c.states.get(key); st.admitted || lifecycle.Started(api, st.sent) {
		c.admission.Reserve(api)
		return nil
	}
	var allocatable corev1.ResourceList
	if c.env.NodeAllocatable != nil {
		allocatable = c.env.NodeAllocatable()
	}
	if r := c.admission.Admit(api, allocatable, func() []*corev1.Pod { return c.admitted(api) }); r != nil {
		return &lifecycle.PodFailure{Reason: r.Reason, Message: r.Message}
	}
	c.states.sync(key, api.UID, func(st syncWriter) { st.admitted = true })
	return nil
}

// reserve notes what a pod takes that has come to the backend some other way, or asks for something else now.
func (c *PodController) reserve(api *corev1.Pod, sent lifecycle.Sent) {
	if c.declared != nil && lifecycle.Started(api, sent) && !lifecycle.Terminal(&api.Status) {
		c.admission.Reserve(api)
	}
}

// admitted returns the other pods that have reserved room on the node.
func (c *PodController) admitted(but *corev1.Pod) (pods []*corev1.Pod) {
	all, err := c.pods.List(labels.Everything())
	if err != nil {
		return nil // a lister over a cache has no errors
	}
	for _, pod := range all {
		st := c.states.get(keyOf(pod))
		ours := st.sent.UID == pod.UID && (st.admitted || lifecycle.Started(pod, st.sent))
		ended := lifecycle.Terminal(&pod.Status) || st.finished(pod.UID) || st.failure != nil && st.stopped
		if pod.UID != but.UID && ours && !ended {
			pods = append(pods, pod)
		}
	}
	return pods
}
