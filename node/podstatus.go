// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
)

// removeAgain is the time after which the removal of a pod is repeated if the pod is still in the cache.
const removeAgain = 30 * time.Second

// statusManager writes the status of each pod to the API server. It processes the status lane, and is the only code that writes pods.
type statusManager struct {
	*podCore
	admission *podAdmission
	outage    *apiOutage
	hostIPs   func() []corev1.HostIP // for pods without reported host IPs
}

// writePodStatus writes the status of one pod to the API server. It is the only code that writes pods.
func (m *statusManager) writePodStatus(ctx context.Context, key string) (class int, err error) {
	ctx, span := trace.StartSpan(ctx, "writePodStatus")
	defer func() { span.SetStatus(err); span.End() }()
	ctx = span.WithField(ctx, "pod", key)

	cached := m.pod(ctx, key)
	if cached == nil {
		return classStatus, nil // the sync lane drops the state
	}
	st := m.states.get(key)
	if st.sent.UID != cached.UID {
		return classStatus, nil // the sync lane does not track this pod yet
	}
	api := st.newestOf(cached, time.Now())
	if api == cached && st.written != nil {
		m.states.status(key, anyPod, func(s statusWriter) {
			if s.written == st.written {
				s.written = nil
			}
		})
	}
	view := lifecycle.View{
		API: api, SyncError: st.syncErr, Failure: st.failure,
		NoEphemeral: m.admission.lacksFeature(capability.EphemeralContainers),
		Stopped:     st.stopped, StopAsked: !st.sent.StopAskedAt.IsZero(),
		FinalStatus: st.finalStatus && st.lastReport == st.report,
		Infeasible:  st.sized.noResize(api), HostIPs: m.hostIPs(),
		Attempted: st.sent.Attempted, Generation: st.generation, Reflected: st.reflected, Now: time.Now(),
	}
	if min(view.Generation, view.Reflected) <= st.unkept {
		view.Generation = 0 // the generation alone needs no write
	}
	if st.report.matches(api.UID) {
		view.Report, view.Relapsed = st.report.status, st.relapsed
	}
	write, status := lifecycle.Publish(view)
	if write == lifecycle.Remove {
		if time.Since(st.removedAt) < removeAgain {
			return classRemoval, nil // the cache will show the removal soon; if not, a resync retries
		}
		return classRemoval, m.removePod(ctx, key, api)
	}
	return classStatus, m.patchStatus(ctx, key, api, st, status)
}

// patchStatus writes the differences, if there are any.
func (m *statusManager) patchStatus(ctx context.Context, key string, api *corev1.Pod, st podState, status corev1.PodStatus) error {
	change := lifecycle.Change{Status: status, DropConditions: m.droppedConditions(api, &st)}
	if st.handed.writing.any() {
		st.byStatus().recordLanded(api)
		m.states.status(key, api.UID, func(s statusWriter) { s.recordLanded(api) })
	}
	own := st.metadataToWrite(api)
	change.Labels, change.Annotations = own.labels, own.annotations
	body, any := lifecycle.PatchBody(api, change)
	if !any {
		m.noneDropped(key, st)
		if api.DeletionTimestamp == nil && len(st.dropped) == 0 {
			m.states.status(key, api.UID, func(s statusWriter) { s.restsAt = api.ResourceVersion })
		}
		return nil
	}
	var wait time.Duration
	m.states.status(key, anyPod, func(s statusWriter) { wait = s.budget.take(time.Now()) })
	if wait > 0 {
		m.statusLane.AddAfter(key, wait)
		return nil
	}
	if own.any() {
		// Record this before the call, because a watch may show the change before the call returns.
		m.states.status(key, api.UID, func(s statusWriter) { s.handed.writing = own })
	}
	got, err := m.sendPatch(ctx, api, body)
	if apierrors.IsForbidden(err) && len(change.Labels) > 0 {
		podLog(ctx, key, api.UID).WithError(err).Warn("the API server refuses the labels that the provider changed; writing the status without them")
		m.states.status(key, api.UID, func(s statusWriter) { s.refuseLabels(change.Labels) })
		change.Labels, own.labels = nil, nil
		if body, any = lifecycle.PatchBody(api, change); !any {
			return nil
		}
		got, err = m.sendPatch(ctx, api, body)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil // the cache will soon show the deletion
	case err != nil:
		if apierrors.IsInvalid(err) && lifecycle.Terminal(&status) {
			// The API server will never accept this status, and the status must not hold up the removal of a
			// deleted pod that has stopped.
			m.states.status(key, anyPod, func(s statusWriter) {
				if s.all.sent.UID == api.UID {
					s.finalStatus, s.lastReport = true, st.report
				}
			})
		}
		return newLaneError(api, eventStatusFailed, fmt.Errorf("write status of pod %s: %w", key, err))
	}
	m.states.status(key, anyPod, func(s statusWriter) {
		if s.all.sent.UID != got.UID {
			return
		}
		s.written, s.writtenAt, s.denied, s.restsAt = got, time.Now(), notice{}, ""
		if got.Status.ObservedGeneration < status.ObservedGeneration {
			s.unkept = status.ObservedGeneration
		}
		s.finalStatus, s.lastReport = lifecycle.Terminal(&status), st.report
		s.recordWritten(own)
	})
	m.noneDropped(key, st)
	if logEnd(ctx, key, api, &status) {
		m.states.status(key, api.UID, func(s statusWriter) { s.endLogged = true })
	}
	if api.DeletionTimestamp != nil && lifecycle.Terminal(&status) {
		m.statusLane.Add(key) // the final status is written: remove
	}
	return nil
}

// noneDropped records that the API server no longer has the conditions that the provider dropped up to the report in st. If such a
// condition reappears, it belongs to another writer.
func (m *statusManager) noneDropped(key string, st podState) {
	if len(st.dropped) == 0 {
		return
	}
	m.states.noneDropped(key, st.report)
}

func (m *statusManager) sendPatch(ctx context.Context, api *corev1.Pod, body []byte) (*corev1.Pod, error) {
	if err := m.fence.Allow(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, podRequestTimeout)
	defer cancel()
	return m.client.Pods(api.Namespace).Patch(ctx, api.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
}

// removePod deletes the API object at once, if it still belongs to this pod.
func (m *statusManager) removePod(ctx context.Context, key string, api *corev1.Pod) error {
	if err := m.fence.Allow(ctx); err != nil {
		return err
	}
	opts := metav1.NewDeleteOptions(0)
	opts.Preconditions = metav1.NewUIDPreconditions(string(api.UID))
	ctx, cancel := context.WithTimeout(ctx, podRequestTimeout)
	defer cancel()
	st := m.states.get(key) // read now, because the sync lane may drop the state as soon as the object is gone
	err := m.client.Pods(api.Namespace).Delete(ctx, api.Name, *opts)
	if err != nil && !apierrors.IsNotFound(err) {
		return newLaneError(api, "", fmt.Errorf("remove pod %s: %w", key, err))
	}
	if st.sent.UID == api.UID {
		logStopped(ctx, key, api, &st)
	}
	m.states.status(key, anyPod, func(s statusWriter) {
		if s.all.sent.UID == api.UID {
			s.removedAt = time.Now()
		}
	})
	return nil
}

// writeFailed handles failures of the status lane. Each failure is logged. If the API server refused the write, it also records an event,
// as often as the notice allows.
func (m *statusManager) writeFailed(ctx context.Context, key string, err error, delay time.Duration, again bool) {
	m.outage.failedToReach(err)
	logger := podLog(ctx, key, uidOf(err)).WithError(err)
	if again {
		logger.Warnf("pod in the API server is not up to date; next try in %v", delay)
	} else {
		logger.Warn("pod in the API server is not up to date; given up until the pod changes")
	}
	var failed *laneError
	refused := apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
	if refused && errors.As(err, &failed) && failed.event != "" {
		news := false
		m.states.status(key, failed.pod.UID, func(st statusWriter) { st.denied, news = st.denied.next(failed.event, time.Now()) })
		if news {
			m.recorder.Event(failed.pod, corev1.EventTypeWarning, failed.event, shortText(err))
		}
	}
}

// droppedConditions returns the conditions to remove from the pod.
func (m *statusManager) droppedConditions(api *corev1.Pod, st *podState) []corev1.PodConditionType {
	fits := st.sized != nil && st.sized.noResize(api) == ""
	if fits && m.admission.fixedSizes() && resizePending(api) {
		return append(slices.Clone(st.dropped), corev1.PodResizePending)
	}
	return st.dropped
}
