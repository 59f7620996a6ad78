// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podenv"
	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// syncFailed handles failures of the sync lane. It logs each failure with the time of the next try. As often as the notice allows, it also
// shows the failure in an event and in the pod's status.
func (w *podWorker) syncFailed(ctx context.Context, key string, err error, delay time.Duration, again bool) {
	countSyncError(err)
	next := "given up until the pod changes"
	if again {
		next = "next try at " + time.Now().Add(delay).UTC().Format(time.RFC3339)
	}
	podLog(ctx, key, uidOf(err)).WithError(err).Warn("pod is not in step with the backend; " + next)
	var failed *laneError
	if !errors.As(err, &failed) || failed.pod == nil {
		return
	}
	outlook := failed.nextTry(again)
	t := &lifecycle.SyncError{Reason: lifecycle.ReasonProviderFailed, Message: redact.CutTo(shortText(failed.err), redact.Limit-len(outlook)) + outlook}
	var notReady *podenv.NotReadyError
	switch {
	case errors.As(err, &notReady):
		t.Container, t.WaitingReason = notReady.Container, lifecycle.WaitingConfig
	case failed.isRejection():
		t.WaitingReason = lifecycle.WaitingConfig
	}
	text, news := t.Message, false
	if failed.ofUpdate() {
		text = failed.event // the error text is only in events, so a changed text alone is not news
	}
	w.states.sync(key, failed.pod.UID, func(st syncWriter) {
		st.unready, st.refused = notReady != nil, 0
		if failed.ofUpdate() && notReady == nil || failed.isRejection() {
			st.refused = lifecycle.SpecVersion(failed.pod)
		}
		st.notices, news = st.notices.next(failed.event, text, time.Now())
		switch {
		case failed.ofUpdate():
			st.syncErr = nil // the pod runs unchanged, so its status is the backend's
		case news, st.syncErr != nil && st.syncErr.Message == st.notices[eventCallHangs].text:
			st.syncErr = t // the hanging call has returned
		}
	})
	w.statusLane.Add(key)
	if news && failed.event != "" {
		w.recorder.Event(failed.pod, corev1.EventTypeWarning, failed.event, t.Message)
	}
}

// updateFailed records that the backend has the pod in an older version than api. Therefore the status of the pod is polled, and a loss is
// detected as for any other pod.
func (w *podWorker) updateFailed(key string, api *corev1.Pod, err error) error {
	w.states.sync(key, api.UID, func(st syncWriter) {
		if !st.sent.Accepted { // from before a restart
			st.sent.Attempted, st.sent.Accepted, st.sent.AcceptedAt = true, true, time.Now()
		}
	})
	w.requestStatus(key)
	return newLaneError(api, eventUpdateFailed, err)
}

// createFailed handles an error of CreatePod. A provider that rejects a pod has created nothing. The pod then fails, unless its controller
// would replace it forever.
func (w *podWorker) createFailed(key string, api *corev1.Pod, attempted bool, err error) error {
	wrapped := fmt.Errorf("create pod %s: %w", key, err)
	if !errdefs.IsInvalidInput(err) {
		return newLaneError(api, eventCreateFailed, wrapped)
	}
	w.states.sync(key, api.UID, func(st syncWriter) {
		// An earlier try may have created the pod nevertheless. A stop makes sure that nothing remains.
		st.sent.Attempted = attempted || st.all.report.matches(api.UID)
	})
	if !lifecycle.EndsWhenRejected(api) {
		return newLaneError(api, eventRejected, wrapped)
	}
	w.failPod(key, api, &lifecycle.PodFailure{Reason: eventRejected, Message: shortText(err)})
	w.syncLane.Add(key)
	return nil
}

// tellBehind records an event if a pod has waited for long because the backend still has another pod of its name.
func (s *podSync) tellBehind(backend *corev1.Pod) {
	if s.api == nil || s.api.DeletionTimestamp != nil || backend == nil {
		return
	}
	message := fmt.Sprintf("the backend still has another pod under this name (UID %s), which must stop first", backend.UID)
	news := false
	s.states.sync(s.key, s.api.UID, func(st syncWriter) {
		since := st.all.othersSince()
		waits := !since.IsZero() && time.Since(since) >= hungCall
		if st.sent.Accepted || st.syncErr != nil || !waits {
			return
		}
		if st.notices, news = st.notices.next(eventFailedSync, message, time.Now()); news {
			st.syncErr = &lifecycle.SyncError{Reason: lifecycle.ReasonProviderFailed, Message: message}
		}
	})
	if news {
		s.recorder.Event(s.api, corev1.EventTypeWarning, eventFailedSync, message)
		s.statusLane.Add(s.key)
	}
}

// tellHeld records one event: the node does not act on a pod that the backend lacks, because the backend's answer is in doubt.
func (s *podSync) tellHeld() {
	if s.api == nil {
		return
	}
	held := s.api.DeletionTimestamp == nil && s.facts.Own == nil && s.facts.Held > lookAgain
	if held == s.held {
		return
	}
	s.states.evidence(s.key, s.api.UID, func(e *evidence) { e.held = held })
	if held {
		s.recorder.Event(s.api, corev1.EventTypeWarning, eventHeldBack, fmt.Sprintf(
			"the backend says that it lacks this pod, and that is in doubt: the pod is left as it is until the backend has said so for %v", s.missing.period))
	}
}

// clearSyncError removes the sync error from a pod's status.
func (w *podWorker) clearSyncError(key string) {
	if st := w.states.get(key); st.syncErr == nil && len(st.notices) == 0 {
		return
	}
	w.states.errors(key, anyPod, (*errorMemory).clearError)
	w.statusLane.Add(key)
}

// showUnsupported shows why a pod waits for lack of a feature. The pod is tried again only after a change.
func (w *podWorker) showUnsupported(key string, api *corev1.Pod, message string) {
	news := false
	w.states.sync(key, api.UID, func(st syncWriter) {
		if news = st.syncErr == nil || st.syncErr.Message != message; news {
			st.clearError()
			st.syncErr = &lifecycle.SyncError{Reason: lifecycle.ReasonUnsupported, Message: message, WaitingReason: lifecycle.ReasonUnsupported}
		}
	})
	if news {
		w.recorder.Event(api, corev1.EventTypeWarning, lifecycle.ReasonUnsupported, message)
		w.statusLane.Add(key)
	}
}
