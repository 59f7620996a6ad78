// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
)

// Notifying is a Backend with the ability node.PodNotifier.
type Notifying struct{ *Backend }

// NotifyPods stores the function for reports.
func (b Notifying) NotifyPods(ctx context.Context, notify func(*corev1.Pod)) {
	_, _ = b.injectFault(ctx, Notify, "", "") // the call can hang or panic, but has no error to return
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notify = notify
}

// Reports defines how reports arrive. The zero value is at once, in order and once.
type Reports struct {
	Delay  time.Duration
	Copies int // how often each is repeated
	// Reverse delays reports until there are this many, and then delivers them, the newest first.
	Reverse int
}

// Reports sets how reports arrive from now on. It delivers delayed reports.
func (b *Backend) Reports(how Reports) {
	b.mu.Lock()
	held := b.held
	b.reports, b.held = how, nil
	b.mu.Unlock()
	for _, pod := range held {
		b.deliverReport(pod, b.copyForCaller(pod))
	}
}

// Tell reports a pod as it is, regardless of the state of the backend, if there is a listener. The pod may be
// unknown, or dead.
func (b *Backend) Tell(pod *corev1.Pod) { b.deliverReport(pod, pod.DeepCopy()) }

// reportPod reports a pod in the way that Reports sets.
func (b *Backend) reportPod(pod *corev1.Pod) {
	b.mu.Lock()
	how := b.reports
	due := []*corev1.Pod{pod}
	if how.Reverse > 1 {
		b.held = append(b.held, pod)
		due = nil
		if len(b.held) >= how.Reverse {
			due, b.held = b.held, nil
			slices.Reverse(due)
		}
	}
	b.mu.Unlock()
	for _, pod := range due {
		for range 1 + how.Copies {
			if how.Delay > 0 {
				time.AfterFunc(how.Delay, func() { b.deliverReport(pod, b.copyForCaller(pod)) })
			} else {
				b.deliverReport(pod, b.copyForCaller(pod))
			}
		}
	}
}

// deliverReport records a report about a pod and passes the copy to its receiver.
func (b *Backend) deliverReport(pod, handed *corev1.Pod) {
	b.mu.Lock()
	notify := b.notify
	b.mu.Unlock()
	if notify == nil {
		return
	}
	b.Recorder.Add(ledger.Entry{Verb: ledger.Report, UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Status: pod.Status.DeepCopy()})
	notify(handed)
}

// Mute makes a Notifying backend forget the receiver of reports, as if the daemon were down.
func (b *Backend) Mute() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notify = nil
}
