// SPDX-License-Identifier: Apache-2.0

package node

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// declare learns what the provider declares, if it does.
func (c *PodController) declare(fail bool) {
	declarer, ok := c.provider.(capability.Declarer)
	if !ok {
		return
	}
	declared := declarer.Capabilities()
	c.declared, c.failUnsupported = &declared, fail
}

// checkSupported returns what the pod asks for and the backend does not have, "" if it has all.
func (c *PodController) checkSupported(api *corev1.Pod) string {
	if c.declared == nil {
		return ""
	}
	pod := api
	if len(api.Spec.EphemeralContainers) > 0 && !c.declared.Has(capability.EphemeralContainers) {
		pod = api.DeepCopy() // they say so in their own statuses
		pod.Spec.EphemeralContainers = nil
	}
	unsupported := c.declared.Check(pod)
	if len(unsupported) == 0 {
		return ""
	}
	return capability.Message(unsupported)
}

// unsupported tells why a pod waits. It is looked at again when it changes; nothing else
// could make a difference.
func (c *PodController) unsupported(key string, api *corev1.Pod, message string) {
	news := false
	c.states.sync(key, api.UID, func(st syncWriter) {
		if news = st.syncErr == nil || st.syncErr.Message != message; news {
			st.clearError()
			st.syncErr = &lifecycle.SyncError{Reason: lifecycle.ReasonUnsupported, Message: message, WaitingReason: lifecycle.ReasonUnsupported}
		}
	})
	if news {
		c.recorder.Event(api, corev1.EventTypeWarning, lifecycle.ReasonUnsupported, message)
		c.statusLane.Add(key)
	}
}

// withoutUnsupported takes out of a private copy of a pod what was added to it while it runs and
// the backend cannot do.
func (c *PodController) withoutUnsupported(pod *corev1.Pod) {
	if c.declared != nil && !c.declared.Has(capability.EphemeralContainers) {
		pod.Spec.EphemeralContainers = nil
	}
}
