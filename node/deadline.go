// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// judge decides that a pod has failed: the node shuts down, or the pod is for
// another operating system, as a kubelet would say, or its active deadline has passed.
// If that is still to come, the pod is looked at again then.
func (c *PodController) judge(key string, api *corev1.Pod) {
	st := c.states.get(key)
	if lifecycle.Terminal(&api.Status) || st.finished(api.UID) || c.judgeShutdown(key, api, &st) {
		return
	}
	if api.DeletionTimestamp != nil || st.failure != nil {
		return
	}
	if lifecycle.ForeignOS(api, c.os) && !st.sent.Attempted {
		c.fail(key, api, corev1.EventTypeWarning, &lifecycle.PodFailure{
			Reason:  eventWrongOS,
			Message: fmt.Sprintf("the pod is for %s (spec.os.name), the node is %s", api.Spec.OS.Name, c.os),
		})
		return
	}
	switch left, has := c.leftToLive(key, api, &st); {
	case !has:
	case left > 0:
		c.syncLane.AddAfter(key, left)
	default:
		c.fail(key, api, corev1.EventTypeNormal, &lifecycle.PodFailure{
			Reason: eventDeadline, Message: "the pod was active for longer than spec.activeDeadlineSeconds",
		})
	}
}

// deadline is the end of a pod's active time, worked out once.
type deadline struct {
	by time.Time // on the wall clock, as the pod says
	at time.Time // by the process's own clock, which is never set
}

// leftToLive returns how long the pod may still be active, and false if for ever. The
// wall clock is asked once for a deadline: when it is set later, by an hour for
// example, pods must not fail for that.
func (c *PodController) leftToLive(key string, api *corev1.Pod, st *podState) (time.Duration, bool) {
	by, has := lifecycle.Deadline(api)
	if !has {
		return 0, false
	}
	if at := st.deadline.at; by.Equal(st.deadline.by) {
		return time.Until(at), true
	}
	at := time.Now().Add(by.Sub(c.wall()))
	c.states.update(key, func(s *podState) { s.deadline = deadline{by: by, at: at} })
	return time.Until(at), true
}

// overdue reports whether the active deadline of a pod that the backend has has passed, and the stop was not
// asked for.
func (c *PodController) overdue(ctx context.Context, key string) bool {
	left, has := c.untilDeadline(ctx, key)
	return has && left <= 0
}

// awaitDeadline has a pod looked at when its active deadline passes, although work on it waits for the fence. A
// deadline that has passed is looked at again soon: it takes a while until it is known that nobody answers.
func (c *PodController) awaitDeadline(ctx context.Context, key string) {
	if left, has := c.untilDeadline(ctx, key); has {
		c.syncLane.AddAfter(key, max(left, lookAgain))
	}
}

// untilDeadline returns how long a pod may still be active whose stop was not asked for, false if for ever.
func (c *PodController) untilDeadline(ctx context.Context, key string) (time.Duration, bool) {
	api, st := c.pod(ctx, key), c.states.get(key)
	if api == nil || st.sent.UID != api.UID || !st.sent.Accepted || !st.sent.StopAskedAt.IsZero() && st.sent.StopAcked || st.finished(api.UID) || lifecycle.Terminal(&api.Status) {
		return 0, false
	}
	return c.leftToLive(key, api, &st)
}

// fail passes the failure on a pod. It is published when the pod has stopped.
func (c *PodController) fail(key string, api *corev1.Pod, eventType string, v *lifecycle.PodFailure) {
	c.states.of(key, api.UID, func(st *podState) { st.failure = v })
	c.recorder.Event(api, eventType, v.Reason, v.Message)
}

// judgeShutdown decides on a pod of a node that shuts down, and reports whether it did:
// a pod that was never started is refused, one whose turn it is must stop.
func (c *PodController) judgeShutdown(key string, api *corev1.Pod, st *podState) bool {
	started := lifecycle.Started(api, st.sent)
	switch {
	case !started && c.draining.Load() && st.failure == nil && api.DeletionTimestamp == nil:
		c.fail(key, api, corev1.EventTypeWarning, lifecycle.Refuse())
	case !started, st.turn.IsZero(), st.failure != nil && st.failure.Grace != nil:
		return false
	default:
		c.fail(key, api, corev1.EventTypeNormal, lifecycle.ShutDown(st.failure, time.Until(st.turn)))
	}
	return true
}
