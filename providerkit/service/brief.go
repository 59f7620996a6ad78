// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// brief delays the reports of pods before their start. A report is sent once the state has lasted long enough.
type brief struct {
	lasts  time.Duration
	notify func(*corev1.Pod) // set before RunInBackground
	wake   chan struct{}     // holds a value if another report is buffered

	mu   sync.Mutex // held during a report, so that reports are in order
	held map[types.UID]report
}

// report is a held report and the time when it is due.
type report struct {
	pod *corev1.Pod
	due time.Time
}

// report reports a pod, or holds the report. A later report replaces a held one, and does not delay it.
func (b *brief) report(pod *corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lasts == 0 || begun(pod) {
		delete(b.held, pod.UID)
		b.notify(pod)
		return
	}
	if b.held == nil {
		b.held = map[types.UID]report{}
	}
	due := time.Now().Add(b.lasts)
	if held, ok := b.held[pod.UID]; ok {
		due = held.due
	}
	b.held[pod.UID] = report{pod, due}
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// begun reports whether a container of a pod has started, or the pod has ended.
func begun(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" {
		return true
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			if list[i].State.Running != nil || list[i].State.Terminated != nil {
				return true
			}
		}
	}
	return false
}

// flush sends the due reports. It returns the time until the next report is due; more is false if no report is
// held.
func (b *brief) flush() (wait time.Duration, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for uid, r := range b.held {
		until := time.Until(r.due)
		switch {
		case until <= 0:
			delete(b.held, uid)
			b.notify(r.pod)
		case !more || until < wait:
			wait, more = until, true
		}
	}
	return wait, more
}

// run sends held reports when they are due, until ctx ends.
func (b *brief) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		case <-timer.C:
		}
		timer.Stop()
		if wait, more := b.flush(); more {
			timer.Reset(wait)
		}
	}
}
