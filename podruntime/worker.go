// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

// podID names a pod.
type podID struct {
	uid             types.UID
	namespace, name string
}

// String returns the name of the pod for logs.
func (p podID) String() string { return p.namespace + "/" + p.name }

// worker owns one pod, and makes all decisions about it. Slow work runs on other goroutines, which put their outcome into the mailbox.
type worker struct {
	workers *workers
	exec    *executor
	id      podID
	born    time.Time
	mail    *mailbox
	report  *report

	// owned by run
	pod      *corev1.Pod // replaced, never changed
	full     bool        // pod has the whole spec, not only the part in its sandbox
	reported bool        // this process has reported the status of pod
	mem      plan.Memory
	seen     view
	actions  runningActions
	failures int      // consecutive failures of reads from the runtime
	refresh  periodic // of the volumes; no time is set before their setup
	measure  periodic // of the use of the disk
}

func newWorker(all *workers, id podID) *worker {
	return &worker{
		workers: all, exec: all.exec, id: id, born: time.Now(), mail: newMailbox(), report: newReport(),
		actions: runningActions{starts: map[string]context.CancelFunc{}}, seen: newView(),
	}
}

// run manages the pod until it is completely removed, or ctx ends.
func (w *worker) run(ctx context.Context) {
	select {
	case <-w.workers.lists.first: // the state from an earlier process is in the inbox
	case <-ctx.Done():
		return
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		again, gone := w.runPass(ctx)
		if gone && w.endUnlessInput() {
			return
		}
		timer.Reset(again)
		select {
		case <-w.mail.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// idle is the maximum time between two passes without input and plans.
const idle = 10 * time.Minute

// runPass takes the input, reads the runtime, begins the next actions, and reports the status. It returns the time until the next pass.
func (w *worker) runPass(ctx context.Context) (again time.Duration, gone bool) {
	w.absorbInput(w.mail.takeInput())
	if err := w.readChanges(ctx); err != nil {
		// After a failed read, neither act nor change the status.
		if w.failures++; w.failures == 1 && ctx.Err() == nil {
			log.G(ctx).WithField("pod", w.id.String()).WithError(err).Warn("the pod is left as it is until the container runtime tells of it")
		}
		if w.failures >= 3 || time.Since(w.born) > readTimeout/2 {
			w.showUnread()
		}
		w.report.reflectRequests(w.mail.takenRequests())
		return min(time.Second<<min(w.failures-1, 4), 10*time.Second), false
	}
	w.failures = 0
	if w.pod == nil {
		return 0, true // a list contained the pod, which is gone now
	}
	again, gone = w.beginActions(ctx)
	w.reportStatus(time.Now())
	if gone {
		w.sweepPod(ctx)
	}
	return again, gone
}

// sweepPod forgets the pod, and removes its files.
func (w *worker) sweepPod(ctx context.Context) {
	if err := w.workers.files.removeFiles(w.pod); err != nil {
		log.G(ctx).WithField("pod", w.id.String()).WithError(err).Warn("failed to remove the files of a pod that no longer exists; it is tried again")
	}
	w.exec.puller.Forget(w.id.uid)
}

// showUnread reports that the pod exists while its state cannot be read, so that callers of GetPods neither wait for it nor treat it as gone.
func (w *worker) showUnread() {
	pod := w.pod
	if pod == nil {
		pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.id.namespace, Name: w.id.name, UID: w.id.uid}}
	}
	w.report.publishUnread(pod)
	w.report.settle()
}

// endUnlessInput ends and forgets the worker, unless it has new input.
func (w *worker) endUnlessInput() bool {
	if !w.mail.closeUnless(func(in *inbox) bool {
		return in.pod != nil || in.stop != nil && w.pod == nil || len(in.done) > 0 || in.list.hasObjects()
	}) {
		return false
	}
	w.report.end()
	w.workers.meter.forgetPod(w.id.uid)
	w.workers.dropWorker(w)
	return true
}

// currentPod returns the pod with a status that reflects the last request, unless patience ends earlier.
func (w *worker) currentPod(ctx, patience context.Context) (*corev1.Pod, error) {
	select {
	case <-w.report.settled:
	case <-ctx.Done():
		return nil, fmt.Errorf("the container runtime has not told yet how pod %s is: %w", w.id, ctx.Err())
	}
	pod := w.report.awaitRequests(patience, w.mail.askedRequests())
	if pod == nil {
		return nil, errdefs.NotFoundf("pod %s", w.id)
	}
	return pod, nil
}
