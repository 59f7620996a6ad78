// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// activeDeadlines computes the active deadlines of pods.
type activeDeadlines struct {
	*podCore
	wall func() time.Time // the wall clock, which may be adjusted
}

// deadlineOf returns the pod's active deadline on the monotonic clock of the process, or zero if the pod has none. It reads the wall clock
// only once per deadline: pods must not fail because the wall clock is adjusted later.
func (d *activeDeadlines) deadlineOf(key string, api *corev1.Pod, st *podState) time.Time {
	by, has := lifecycle.Deadline(api)
	if !has {
		return time.Time{}
	}
	if by.Equal(st.deadline.by) {
		return st.deadline.at
	}
	at := time.Now().Add(by.Sub(d.wall()))
	d.states.sync(key, anyPod, func(s syncWriter) { s.deadline = deadline{by: by, at: at} })
	return at
}

// isOverdue reports whether the active deadline of a pod at the backend has passed, and no stop was acknowledged.
func (d *activeDeadlines) isOverdue(ctx context.Context, key string) bool {
	left, has := d.untilDeadline(ctx, key)
	return has && left <= 0
}

// awaitDeadline schedules work on a pod at its active deadline, although the pod waits for the fence. If the deadline has passed, it
// schedules another attempt soon, because it takes some time until the fence detects that the API server does not answer.
func (d *activeDeadlines) awaitDeadline(ctx context.Context, key string) {
	if left, has := d.untilDeadline(ctx, key); has {
		d.syncLane.AddAfter(key, max(left, lookAgain))
	}
}

// untilDeadline returns the remaining active time of a pod whose stop was not acknowledged. It returns false if the pod has no deadline.
func (d *activeDeadlines) untilDeadline(ctx context.Context, key string) (time.Duration, bool) {
	api, st := d.pod(ctx, key), d.states.get(key)
	switch {
	case api == nil, st.sent.UID != api.UID, !st.sent.Accepted:
		return 0, false
	case st.sent.StopAcked, st.isFinished(api.UID), lifecycle.Terminal(&api.Status):
		return 0, false
	}
	at := d.deadlineOf(key, api, &st)
	return time.Until(at), !at.IsZero()
}
