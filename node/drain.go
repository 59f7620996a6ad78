// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// CriticalPriority is the lowest priority of pods that are critical to the system (system-cluster-critical,
	// system-node-critical).
	CriticalPriority = lifecycle.CriticalPriority

	// drainLook is the interval at which a drain checks its progress. The check reads memory only.
	drainLook = 100 * time.Millisecond
	// drainWord is the time that a drain waits at its end for the status writes of stopped pods.
	drainWord = 10 * time.Second
	// drainNames is the number of pods that an error names.
	drainNames = 10
)

// DrainGroup is a group of pods that a drain stops at the same time: the pods with a priority of at least
// Priority that are not in a higher group. Pods below all groups are in the lowest group.
type DrainGroup struct {
	Priority int32
	// Timeout is the maximum time for the group. A pod with a longer grace period gets the rest of this time.
	Timeout time.Duration
}

// DrainGroups returns the two groups of a kubelet. Critical pods come last; critical is their part of timeout.
func DrainGroups(timeout, critical time.Duration) []DrainGroup {
	return []DrainGroup{
		{Priority: math.MinInt32, Timeout: timeout - critical},
		{Priority: CriticalPriority, Timeout: critical},
	}
}

// Drain stops all pods at the backend, as a kubelet does when its node shuts down: one group after the other, from the lowest to the
// highest. Stopped pods are Failed, with the reason Terminated and the condition DisruptionTarget; the objects stay. From now on, pods that
// have not started are refused (Failed, NodeShutdown).
//
// Drain must be called while Run runs, because Run does the work: calls for one pod never overlap, and statuses have one writer. Drain
// returns when all pods have stopped and their statuses are written, at the latest ten seconds after the groups' time. Pods that have not
// stopped by then are left alone, and the error names them. Drain does nothing while another process acts for the node, because the pods
// belong to that process.
func (c *PodController) Drain(ctx context.Context, groups ...DrainGroup) error {
	if len(groups) == 0 {
		return errdefs.InvalidInput("drain: no groups of pods")
	}
	select {
	case <-c.ready:
	default:
		return errors.New("drain: the pod controller is not ready; the pods are left as they are")
	}
	if _, waits := c.fence.StandsBy(); waits {
		return nil
	}
	d := &drain{podCore: c.podCore, ended: c.run.done, groups: slices.SortedFunc(slices.Values(groups), func(a, b DrainGroup) int { return cmp.Compare(a.Priority, b.Priority) })}
	c.worker.draining.Store(true)
	for i, g := range d.groups {
		err := d.awaitPods(ctx, g.Timeout, func(until time.Time) bool { return d.stopGroup(ctx, i, until) })
		if err != nil {
			return err
		}
	}
	if err := d.awaitPods(ctx, drainWord, func(time.Time) bool { return d.isPublished(ctx) }); err != nil {
		return err
	}
	return d.unstoppedError(ctx)
}

// drain is the work of one Drain.
type drain struct {
	*podCore
	ended  <-chan struct{} // closed when the controller has ended
	groups []DrainGroup    // from the lowest to the highest
}

// awaitPods polls until done returns true or timeout has passed.
func (d *drain) awaitPods(ctx context.Context, timeout time.Duration, done func(until time.Time) bool) error {
	until := time.Now().Add(timeout)
	ticker := time.NewTicker(drainLook)
	defer ticker.Stop()
	for !done(until) && time.Now().Before(until) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("drain: %w", ctx.Err())
		case <-d.ended:
			return errors.New("drain: the pod controller has ended")
		}
	}
	return nil
}

// stopGroup starts the stop of every pod in a group, including new pods, and reports whether all have ended.
func (d *drain) stopGroup(ctx context.Context, group int, until time.Time) (all bool) {
	all = true
	for key, api := range d.runningPods(ctx) {
		if d.groupOf(api) != group {
			continue
		}
		all = false
		if d.states.giveTurn(key, api.UID, until) {
			d.syncLane.AddNow(key)
		}
	}
	return all
}

// groupOf returns the group of the pod.
func (d *drain) groupOf(pod *corev1.Pod) (group int) {
	var priority int32
	if pod.Spec.Priority != nil {
		priority = *pod.Spec.Priority
	}
	for i, g := range d.groups {
		if priority >= g.Priority {
			group = i
		}
	}
	return group
}

// isPublished reports whether the statuses of all stopped pods are written.
func (d *drain) isPublished(ctx context.Context) bool {
	for key, api := range d.runningPods(ctx) {
		if st := d.states.get(key); st.sent.UID == api.UID && (st.stopped || st.isFinished(api.UID)) {
			return false
		}
	}
	return true
}

// unstoppedError returns an error with the names of the pods that have not stopped.
func (d *drain) unstoppedError(ctx context.Context) error {
	var keys []string
	for key := range d.runningPods(ctx) {
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		log.G(ctx).Info("all pods have stopped")
		return nil
	}
	slices.Sort(keys)
	n := len(keys)
	if n > drainNames {
		keys = append(keys[:drainNames], "...")
	}
	return fmt.Errorf("drain: %d pods have not stopped in time, or the API server does not know it; they are left as they are: %s", n, strings.Join(keys, ", "))
}

// runningPods returns the pods that have not ended in the API server.
func (d *drain) runningPods(ctx context.Context) map[string]*corev1.Pod {
	out := map[string]*corev1.Pod{}
	for _, api := range d.all(ctx) {
		if key := keyOf(api); !d.states.isTerminated(key, api) {
			out[key] = api
		}
	}
	return out
}

// giveTurn records that a draining pod must stop by until, and reports whether this is new. The caller must then add the key to the sync
// lane.
func (s *podStates) giveTurn(key string, uid types.UID, until time.Time) (news bool) {
	s.changeOrBegin(key, func(st *podState) {
		if st.sent.UID == "" {
			st.sent.UID = uid // as beginState does, before the sync lane tracks the pod
		}
		news = st.sent.UID == uid && st.turn.IsZero()
		if news {
			st.turn = until
		}
	})
	return news
}
