// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/eviction"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

// absorbInput merges new input into the state of the worker.
func (w *worker) absorbInput(in inbox) {
	known := w.full
	if in.pod != nil {
		w.adoptSpec(in.pod)
	}
	if in.stop != nil {
		w.mem.Delete(in.stop.grace, in.stop.at)
		w.actions.cancelStart("") // no caller waits for the sandbox any longer; if it is created anyway, a list finds it
	}
	for _, d := range in.done {
		w.actions.end(d.action)
		if d.action.Kind == plan.SetupVolumes && d.outcome.Reason == "" && w.refresh.at.IsZero() {
			w.refresh.at = d.at.Add(d.outcome.RetryAfter)
		}
		w.mem.End(d.action, d.outcome, d.at)
		w.seen.recordOutcome(d.action, d.outcome, w.workers.lists.lastRound())
	}
	if in.list != nil {
		for _, id := range w.seen.mergeList(in.list) {
			w.exec.prober.Forget(id)
		}
	}
	for _, id := range in.touched {
		w.seen.markDirty(id)
	}
	if in.measured != nil {
		w.recordUsage(*in.measured)
	}
	if in.evict != nil {
		w.evictPod(*in.evict)
	}
	w.mem.Reclaim = w.mem.Reclaim || in.reclaim
	if in.pod != nil && !known {
		w.admitUnderPressure() // after the list, because running pods are not refused
	}
	if in.refresh != nil {
		w.refresh.end(time.Now().Add(*in.refresh))
	}
}

// adoptSpec takes the new spec of the pod, and keeps its known status.
func (w *worker) adoptSpec(pod *corev1.Pod) {
	if w.reported {
		qos := pod.Status.QOSClass
		pod.Status = w.pod.Status
		if pod.Status.QOSClass == "" {
			pod.Status.QOSClass = qos
		}
	}
	if w.mem.StartTime.IsZero() && pod.Status.StartTime != nil {
		w.mem.StartTime = pod.Status.StartTime.Time
	}
	if w.pod != nil && !sameMetadata(w.pod, pod) {
		w.refresh.at = time.Now() // volumes may depend on the change
	}
	w.pod, w.full = pod, true
	w.verifySysctls()
}

// verifySysctls refuses a pod with forbidden sysctls before any container starts.
func (w *worker) verifySysctls() {
	err := w.workers.sysctls.Verify(w.pod)
	if err == nil || w.mem.Eviction != nil || !w.seen.isEmpty() {
		return
	}
	w.mem.Eviction = &plan.Eviction{Reason: "SysctlForbidden", Message: "Pod was rejected: " + err.Error()}
	w.exec.events.recordPod(w.pod, corev1.EventTypeWarning, "SysctlForbidden", err.Error())
}

// admitUnderPressure refuses a new pod while the machine is short of resources for it.
func (w *worker) admitUnderPressure() {
	if !w.seen.isEmpty() || podEnded(w.pod) {
		return
	}
	if message := eviction.Refuse(w.pod, w.workers.conditions.current()); message != "" {
		w.evictPod(plan.Eviction{Reason: "Evicted", Message: "Pod was rejected: " + message})
	}
}
