// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/podstatus"
)

// beginActions begins the next actions, and returns the time until the next pass.
func (w *worker) beginActions(ctx context.Context) (again time.Duration, gone bool) {
	if w.mem.StartTime.IsZero() {
		w.mem.StartTime = time.Now()
	}
	w.probeContainers()
	for range 100 {
		now := time.Now()
		next := plan.Next(w.pod, w.seen.observed, &w.mem, now)
		if !w.full && !w.mem.Deleted() && !onlyEnds(next) {
			return idle, false // the spec is not known yet
		}
		instant := false
		for _, a := range next.Actions {
			instant = w.beginAction(ctx, a, now) || instant
		}
		if instant {
			continue // an action has ended already, so further actions may be possible
		}
		again = idle
		if !next.Again.IsZero() {
			again = max(next.Again.Sub(now), 0)
		}
		return min(again, w.refreshVolumes(ctx, now), w.checkUsage(ctx, now)), next.Gone
	}
	return time.Second, false // a plan that never ends would use a whole CPU
}

// onlyEnds reports whether a plan only completes the end of a pod.
func onlyEnds(p plan.Plan) bool {
	return !slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Kind != plan.StopSandbox && a.Kind != plan.Finish })
}

// beginAction begins an action. It reports true if the action has ended already.
func (w *worker) beginAction(ctx context.Context, a plan.Action, now time.Time) (instant bool) {
	w.mem.Begin(a, now)
	if e := a.Event; e != nil {
		if a.Container != "" {
			w.exec.events.recordContainer(w.pod, a.Container, e.Type, e.Reason, e.Message)
		} else {
			w.exec.events.recordPod(w.pod, e.Type, e.Reason, e.Message)
		}
	}
	switch a.Kind {
	case plan.CancelStart:
		w.actions.cancelStart(a.Container)
		w.mem.End(a, plan.Outcome{}, now)
		return true
	case plan.BackOff, plan.Kill:
		w.mem.End(a, plan.Outcome{}, now)
		return true
	}
	job := w.newJob(a)
	ctx = w.actions.begin(ctx, a)
	w.workers.background.begin(func() {
		outcome := job.runAction(ctx, a)
		if outcome.Reason == reasonRemove && ctx.Err() == nil { // neither an event nor the status shows this failure
			log.G(ctx).WithField("pod", w.id.String()).WithField("reason", outcome.Message).Warn("failed to remove the rest of the pod; it is tried again")
		}
		w.mail.putInput(func(in *inbox) { in.done = append(in.done, done{a, outcome, time.Now()}) })
	})
	return false
}

// reportStatus reports changes to the pod controller.
func (w *worker) reportStatus(now time.Time) {
	status := podstatus.Status(w.pod, w.seen.observed, &w.mem, now)
	if status.QOSClass == "" {
		status.QOSClass = w.pod.Status.QOSClass
	}
	limitMessages(&status)
	news := !w.reported || !equality.Semantic.DeepEqual(status, w.pod.Status)
	if news {
		pod := *w.pod
		pod.Status = status
		w.pod = &pod
		w.reported = w.full
	}
	w.report.publishView(w.pod, &w.seen)
	w.report.reflectRequests(w.mail.takenRequests())
	told := w.full || w.mem.Deleted()
	if told || w.actions.count == 0 {
		w.report.settle() // a container that an earlier process saw ended must not be shown as running
	}
	if news && w.workers.notify != nil && told {
		w.workers.notify(w.pod) // last, because the receiver may request the pod
	}
}

// sameMetadata reports whether the metadata that volumes use are equal.
func sameMetadata(a, b *corev1.Pod) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}
