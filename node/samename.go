// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// noteInstances reports additional instances of a wanted pod in a list, which violate the contract of CreatePod. The node cannot decide
// which instance to keep. It returns the additional instances, because their statuses are not the status of the pod.
func (c *podCore) noteInstances(ctx context.Context, key string, api *corev1.Pod, pods []*corev1.Pod) (further []*corev1.Pod) {
	st := c.states.get(key)
	known := &api.Status
	if st.report.matches(api.UID) {
		known = st.report.status
	}
	_, further = lifecycle.Instances(api.UID, known, pods)
	if doubled := len(further) > 0; doubled != st.doubled {
		c.states.evidence(key, api.UID, func(e *evidence) { e.doubled = doubled })
	}
	if len(further) > 0 && !st.doubled {
		message := fmt.Sprintf("the backend runs %d instances of this pod (UID %s), and the node cannot tell which is to stay: it stops none of them before the pod is deleted; stop all but one at the backend", 1+len(further), api.UID)
		podLog(ctx, key, api.UID).Warn(message)
		c.recorder.Event(api, corev1.EventTypeWarning, eventSecondPod, message)
	}
	return further
}

// noteOthers records which pods of a list are not the wanted pod of their name. If the backend has not accepted the wanted pod, or accepted
// it after the list was requested, the list proves nothing about the others. A pod that has ended or stopped needs no acceptance, because
// it may have ended before this process started.
func (c *podCore) noteOthers(key string, api *corev1.Pod, pods []*corev1.Pod, asked time.Time) {
	st := c.states.get(key)
	wanted := types.UID("")
	if api != nil {
		wanted = api.UID
		accepted := st.sent.Accepted && st.sent.AcceptedAt.Before(asked)
		if !accepted && !st.stopped && !st.isOver(api) {
			c.syncLane.Add(key)
			return
		}
	}
	c.states.showOthers(key, wanted, pods)
	hidden := c.states.hideUnlisted(key, pods, asked)
	if now := c.states.get(key); hidden || !now.othersSince().IsZero() {
		c.syncLane.Add(key)
	}
}
