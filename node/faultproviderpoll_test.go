// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// waiting is a backend in which one pod stays Pending until it is released.
type waiting struct {
	*memory.Backend
	reads atomic.Int64
	runs  atomic.Bool
}

func newWaiting(pending corev1.PodStatus) *waiting {
	b := &waiting{Backend: memory.New()}
	b.Fault = func(_ context.Context, method, _ string) error {
		switch method {
		case memory.List, memory.Get, memory.Status:
			b.reads.Add(1)
		}
		return nil
	}
	b.Lossy = func(p *corev1.Pod) {
		if p.Name == "waits" && !b.runs.Load() {
			p.Status = *pending.DeepCopy()
		}
	}
	return b
}

// notStarted has the statuses that backends report for a pod that has not started.
var notStarted = map[string]corev1.PodStatus{
	"containers wait": {Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "c", Image: "i", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
	}},
	"no containers yet": {Phase: corev1.PodPending},
}

// TestFault59PendingPodCostsNoPolling: one pod that waits for hours does not increase the polling of all pods, and its start is noticed
// within a poll interval.
func TestFault59PendingPodCostsNoPolling(t *testing.T) {
	pods, over := 20, time.Hour
	if faultrow.Long() {
		pods = 1000
	}
	without := int64(0)
	b := newWaiting(corev1.PodStatus{})
	inWorld(t, b.Backend, func(w *world) {
		w.start()
		w.create("p", pods, 10*time.Second)
		w.pass(time.Minute)
		before := b.reads.Load()
		w.pass(over)
		without = b.reads.Load() - before
	}, silent)
	for name, pending := range notStarted {
		t.Run(name, func(t *testing.T) {
			b := newWaiting(pending)
			inWorld(t, b.Backend, func(w *world) {
				w.start()
				w.create("p", pods, 10*time.Second)
				w.pass(time.Minute)
				before := b.reads.Load()
				w.api.Create(bound("waits", "w"))
				w.pass(over)
				with := b.reads.Load() - before
				if with > without*3/2 {
					w.Errorf("%d reads of the backend in %v, and %d without the pending pod: want at most 1.5 times as many", with, over, without)
				}
				w.wantPhase("waits", corev1.PodPending)
				b.runs.Store(true)
				noticed := w.until("the pod is seen to run", defaultPollInterval+time.Second, func() bool { return w.phase("waits") == corev1.PodRunning })
				faultrow.Record(t, 59, "one pod stays Pending beside running ones, polled ("+name+")",
					"%d reads of the backend in %v beside %d pods, %d without it; seen to run after %v", with, over, pods, without, noticed)
			}, silent)
		})
	}
}

// TestPolledPodIsHurried: a pod is polled every second for a while after a request to start or stop it.
func TestPolledPodIsHurried(t *testing.T) {
	for name, pending := range notStarted {
		t.Run(name, func(t *testing.T) {
			b := newWaiting(pending)
			b.StopTime = 20 * time.Second
			inWorld(t, b.Backend, func(w *world) {
				w.start()
				w.api.Create(bound("waits", "w"))
				w.pass(17500 * time.Millisecond)
				b.runs.Store(true)
				w.until("the pod is seen to run", hurriedPoll+100*time.Millisecond, func() bool { return w.phase("waits") == corev1.PodRunning })
				w.pass(10 * time.Minute)
				w.api.Delete("d", "waits", 30)
				w.pass(b.StopTime)
				w.until("the pod is seen to have stopped", hurriedPoll+200*time.Millisecond, func() bool { return w.phase("waits") == "" })
			}, silent)
		})
	}
}

// TestStopThatFailsHurriesNobody: repeated identical stop requests do not count.
func TestStopThatFailsHurriesNobody(t *testing.T) {
	b := newWaiting(corev1.PodStatus{})
	inWorld(t, b.Backend, func(w *world) {
		w.start()
		w.create("p", 1, time.Second)
		w.pass(time.Minute)
		b.Inject(memory.Fault{Method: memory.Delete, Err: memory.ErrUnwell})
		w.api.Delete("d", "p0", 30)
		w.pass(10 * time.Minute)
		before := b.reads.Load()
		w.pass(time.Hour)
		if n := b.reads.Load() - before; n > 720*3/2 {
			t.Errorf("%d reads of the backend in an hour while DeletePod fails, want at most half as many again as the 720 of the poll period", n)
		}
	}, silent)
}
