// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// podReports handles the provider's reports about pods.
type podReports struct {
	*podCore
	tracker *podTracker
	early   earlyReports
}

// report handles the provider's report about a pod. It only stores the report and adds the pod to the lanes, so it never waits for the API
// server. The newest report counts. A report about another pod of the same name only makes the sync lane ask the backend.
func (p *podReports) report(ctx context.Context, pod *corev1.Pod) {
	if pod == nil || ctx.Err() != nil {
		return
	}
	if r := newReport(pod); !p.early.holdReport(pod, r) {
		p.handleReport(ctx, pod, r)
	}
}

// beginReports handles the reports from before the caches were filled.
func (p *podReports) beginReports(ctx context.Context) {
	p.early.takeHeld(func(pod *corev1.Pod, r *report) { p.handleReport(ctx, pod, r) })
}

// takeListed handles the status of a pod in a list. For a provider that reports, this status counts until the provider's first report.
func (p *podReports) takeListed(ctx context.Context, pod *corev1.Pod, notifies bool) {
	r := newReport(pod)
	r.listed = notifies
	p.handleReport(ctx, pod, r)
}

func newReport(pod *corev1.Pod) *report {
	return &report{
		uid:        pod.UID,
		version:    pod.ResourceVersion,
		generation: pod.Generation,
		status:     pod.Status.DeepCopy(),
		metadata:   metadata{maps.Clone(pod.Labels), maps.Clone(pod.Annotations)},
	}
}

// handleReport handles a report about the pod.
func (p *podReports) handleReport(ctx context.Context, pod *corev1.Pod, r *report) {
	key := keyOf(pod)
	api := p.pod(ctx, key)
	ran := api
	if api != nil && !lifecycle.HasRun(api) {
		ran = nil // a late report without a UID may be about an older pod
	}
	pod = p.given.stampUID(pod, ran)
	r.uid = pod.UID
	if api == nil || api.UID != pod.UID {
		// Either the pod is from before a restart and not in the cache yet: it is then adopted with its status. Or the pod is gone.
		if api == nil {
			p.endsLate(key, pod.UID, r)
		}
		p.syncLane.Add(key)
		return
	}
	if !r.polled && r.generation > api.Generation {
		r.generation = 0 // the backend has its own generations
	}
	redact.Status(r.status, p.secrets.Values(api.UID))
	if !p.storeReport(key, api, r) {
		return
	}
	p.statusLane.Add(key)
	switch {
	case lifecycle.Terminal(r.status):
		p.syncLane.AddNow(key)
	case api.DeletionTimestamp != nil, !p.states.get(key).sent.MissingSince.IsZero():
		p.syncLane.Add(key) // if the backend shows the pod now, it is no longer missing, and a later absence counts from its own start
	}
}

// endsLate records the end of a pod that was force-deleted and is not forgotten yet, so that its reserved resources are released.
func (p *podReports) endsLate(key string, uid types.UID, r *report) {
	if !lifecycle.Terminal(r.status) {
		return
	}
	redact.Status(r.status, p.secrets.Values(uid))
	p.states.reports(key, uid, func(st reportWriter) { st.report, st.relapsed = r, false })
}

// storeReport stores the report if it contains anything new about the pod.
func (p *podReports) storeReport(key string, api *corev1.Pod, r *report) (news bool) {
	p.tracker.startTracking(key, api)
	p.states.reports(key, api.UID, func(st reportWriter) { // the state may belong to the next pod of the name now
		old := st.report
		if st.all.isStale(r.version) {
			r.metadata = st.handed.metadata
			if old.matches(api.UID) {
				r.metadata = old.metadata
			}
		}
		if late := r.polled && old != r.after; late || r.listed && old.isOwnWord(api.UID) {
			return // older than the provider's reports since the call
		}
		news = st.recordReflected(r.generation, st.generation)
		if old.matches(api.UID) {
			if lifecycle.Terminal(old.status) {
				was := st.relapsed
				st.relapsed = !lifecycle.Terminal(r.status)
				if st.relapsed {
					return // out of order: the pod has ended, even if the end is not published yet
				}
				news = news || was                // the end counts again, even with the same status
				r.status.Phase = old.status.Phase // only exit codes may change after the end
			}
			if r.polled {
				r.metadata = old.metadata
			}
			if equality.Semantic.DeepEqual(old.status, r.status) &&
				maps.Equal(old.labels, r.labels) && maps.Equal(old.annotations, r.annotations) {
				if old.listed {
					st.report = r // a report replaces a listed status for good
				}
				return
			}
			for _, cond := range old.status.Conditions {
				if !slices.ContainsFunc(r.status.Conditions, func(n corev1.PodCondition) bool { return n.Type == cond.Type }) {
					st.dropped = append(slices.Clone(st.dropped), cond.Type)
				}
			}
		}
		st.dropped = slices.DeleteFunc(slices.Clone(st.dropped), func(t corev1.PodConditionType) bool {
			return !isDroppable(api, t) || slices.ContainsFunc(r.status.Conditions, func(n corev1.PodCondition) bool { return n.Type == t })
		})
		st.report = r
		if !st.all.sent.MissingSince.IsZero() {
			st.reportedAt = time.Now() // the backend has the pod
		}
		news = true
	})
	return news
}

// isDroppable reports whether a condition is removed when the provider stops reporting it. A kubelet's conditions are derived instead. A
// readiness gate belongs to another writer; the provider only has a copy.
func isDroppable(pod *corev1.Pod, t corev1.PodConditionType) bool {
	switch t {
	case corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized, corev1.PodScheduled:
		return false
	}
	return !slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == t })
}
