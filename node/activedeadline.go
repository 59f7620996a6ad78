// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// deadline is the end of a pod's active time, worked out once.
type deadline struct {
	by time.Time // on the wall clock, as the pod says
	at time.Time // by the process's own clock, which is never set
}

// deadlineOf returns the end of the pod's active time by the process's own clock, zero if it has none. The
// wall clock is asked once for a deadline: when it is set later, by an hour for
// example, pods must not fail for that.
func (c *PodController) deadlineOf(key string, api *corev1.Pod, st *podState) time.Time {
	by, has := lifecycle.Deadline(api)
	if !has {
		return time.Time{}
	}
	if by.Equal(st.deadline.by) {
		return st.deadline.at
	}
	at := time.Now().Add(by.Sub(c.wall()))
	c.states.sync(key, anyPod, func(s syncWriter) { s.deadline = deadline{by: by, at: at} })
	return at
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
	at := c.deadlineOf(key, api, &st)
	return time.Until(at), !at.IsZero()
}
