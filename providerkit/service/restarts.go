// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

const (
	reasonBackoff = "CrashLoopBackOff"
	// reasonUnknown is the reason of package podstatus for a container with an unknown exit code.
	reasonUnknown = "ContainerStatusUnknown"
)

const (
	// mostRestarts bounds the containers started again at the same time.
	mostRestarts = 4
	// startTime bounds a start, because its pod is not stopped before the start is over. Services take some time to show the new run.
	startTime = 3 * time.Minute
)

// restarts tracks the containers restarted by a Starter.
type restarts struct {
	first time.Duration // of the back-off
	wake  chan struct{} // holds a value if another container has ended

	mu    sync.Mutex
	lives map[types.UID]*life // guarded by mu; keyed by the UIDs of pods
}

// life is the history of the runs of a container.
type life struct {
	count int32
	last  *corev1.ContainerStateTerminated // how the previous run ended; nil: no previous run, or unknown
	began time.Time                        // the time of the last start
	delay time.Duration                    // of the back-off after this run; 0: none
	due   time.Time                        // time of the next start; zero: the run has not ended
	waits bool                             // a back-off is under way, not only a start
	busy  chan struct{}                    // closed at the end of the current start; nil without a start
}

func newRestarts(first time.Duration) *restarts {
	return &restarts{first: first, wake: make(chan struct{}, 1), lives: map[types.UID]*life{}}
}

// backoff returns the delay after a run that ended at the given time.
func (l *life) backoff(ended time.Time) time.Duration {
	if ended.Sub(l.began) > wellFor {
		l.delay = 0
	}
	return l.delay
}

// of returns the history of the container of a pod. For a pod from before a restart of the process, the history continues from the last
// reported status or from the count of the driver. The caller holds r.mu.
func (r *restarts) of(pod *corev1.Pod, count int32) *life {
	if l := r.lives[pod.UID]; l != nil {
		return l
	}
	l := &life{count: count}
	if len(pod.Status.ContainerStatuses) == 1 {
		told := &pod.Status.ContainerStatuses[0]
		l.count, l.last = max(count, told.RestartCount), told.LastTerminationState.Terminated
		if l.count > 0 {
			l.began, l.delay = time.Now(), min(r.first<<min(l.count-1, 8), longestBackoff)
		}
		if ended := told.State.Terminated; ended != nil {
			l.last, l.due = ended, time.Now()
		}
		if w := told.State.Waiting; w != nil && w.Reason == reasonBackoff {
			l.due, l.waits = time.Now().Add(l.delay), true
		}
		if !l.due.IsZero() {
			r.hurry()
		}
	}
	r.lives[pod.UID] = l
	return l
}

// apply turns the status of one run into the status of a pod with a restarted container.
func (r *restarts) apply(pod *corev1.Pod, s *corev1.PodStatus) {
	if len(pod.Spec.Containers) != 1 || len(s.ContainerStatuses) != 1 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &s.ContainerStatuses[0]
	l := r.of(pod, c.RestartCount)
	running, ended := c.State.Running, c.State.Terminated
	over := s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil
	switch {
	case l.busy != nil:
		l.show(pod, c)
	case running != nil && !l.due.IsZero(): // an earlier process has started the run
		l.count, l.due, l.waits, l.began = l.count+1, time.Time{}, false, time.Now()
		l.delay = r.next(l.delay)
	case over:
		l.due, l.waits = time.Time{}, false
	case endedForNow(pod, c):
		if l.due.IsZero() {
			l.end(ended)
			r.hurry()
		}
		l.show(pod, c)
	}
	c.RestartCount = l.count
	if c.LastTerminationState.Terminated == nil && c.State.Terminated == nil {
		c.LastTerminationState.Terminated = l.last
	}
}

// endedForNow reports whether a container has ended and should run again.
func endedForNow(pod *corev1.Pod, c *corev1.ContainerStatus) bool {
	spec := &pod.Spec.Containers[0]
	if t := c.State.Terminated; t != nil {
		return podstatus.RestartsAfter(pod, spec, t.ExitCode)
	}
	return c.State.Waiting != nil && c.State.Waiting.Reason == reasonUnknown && podstatus.RestartsAfter(pod, spec, 0)
}

// end records the end of a run; nil if it is unknown.
func (l *life) end(how *corev1.ContainerStateTerminated) {
	at := time.Now()
	wait := l.backoff(at)
	l.last, l.due, l.waits = how, at.Add(wait), wait > 0
}

// show reports a container in its back-off as waiting.
func (l *life) show(pod *corev1.Pod, c *corev1.ContainerStatus) {
	if !l.waits {
		return
	}
	c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reasonBackoff, Message: fmt.Sprintf(
		"back-off %s restarting failed container=%s pod=%s_%s(%s)", l.delay, c.Name, pod.Name, pod.Namespace, pod.UID)}}
	c.LastTerminationState.Terminated = l.last
	c.Ready, c.Started = false, new(false)
}

// next returns the back-off after delay.
func (r *restarts) next(delay time.Duration) time.Duration {
	if delay == 0 {
		return r.first
	}
	return min(2*delay, longestBackoff)
}

// hurry triggers a check for containers to start.
func (r *restarts) hurry() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take returns the pods with a container to start now, at most as many as mostRestarts allows, and the time of the next start. It marks
// these starts as running. Each finished start calls hurry.
func (r *restarts) take(now time.Time) (due []types.UID, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	room := mostRestarts
	for uid, l := range r.lives {
		switch {
		case l.busy != nil:
			room--
		case l.due.IsZero():
		case !l.due.After(now):
			due = append(due, uid)
		case next.IsZero() || l.due.Before(next):
			next = l.due
		}
	}
	slices.SortFunc(due, func(a, b types.UID) int { return r.lives[a].due.Compare(r.lives[b].due) })
	due = due[:min(len(due), max(0, room))]
	for _, uid := range due {
		r.lives[uid].busy = make(chan struct{})
	}
	return due, next
}

// finish records that a start is over. A failed start is tried again after the next back-off.
func (r *restarts) finish(uid types.UID, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lives[uid]
	now := time.Now()
	l.delay = r.next(l.delay)
	if err == nil {
		l.count, l.due, l.waits, l.began = l.count+1, time.Time{}, false, now
	} else {
		after, _ := errdefs.RetryAfterOf(err)
		l.due, l.waits, l.began = now.Add(max(l.delay, after)), true, now
	}
	close(l.busy)
	l.busy = nil
	r.hurry()
}

// forget forgets pods that no longer exist. It calls there without its lock, because the callee holds another lock while it acquires this
// one.
func (r *restarts) forget(there func(types.UID) bool) {
	r.mu.Lock()
	all := slices.Collect(maps.Keys(r.lives))
	r.mu.Unlock()
	all = slices.DeleteFunc(all, there)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, uid := range all {
		if l := r.lives[uid]; l != nil && l.busy == nil {
			delete(r.lives, uid)
		}
	}
}

// settle waits for a running start of the pod. No start begins for a pod under deletion.
func (r *restarts) settle(ctx context.Context, uid types.UID) error {
	r.mu.Lock()
	var busy chan struct{}
	if l := r.lives[uid]; l != nil {
		busy = l.busy
	}
	r.mu.Unlock()
	if busy == nil {
		return nil
	}
	select {
	case <-busy:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the container is still being started again: %w", ctx.Err())
	}
}

// run starts containers again until ctx ends.
func (r *restarts) run(ctx context.Context, start func(context.Context, types.UID), there func(types.UID) bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var starts sync.WaitGroup
	defer starts.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
		r.forget(there)
		due, next := r.take(time.Now())
		for _, uid := range due {
			starts.Go(func() { start(ctx, uid) })
		}
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// errDeleted is the reason why a container is not started again.
var errDeleted = errdefs.NotFound("the pod is being deleted")
