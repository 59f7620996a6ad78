// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/keyqueue"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// slowCall is the time after which a read of a pod's inputs lets another pod have its worker. For provider
// calls, providercall.Patience decides.
const slowCall = 10 * time.Second

// createPod gives a pod to the backend, if the backend has the features that the pod needs and the node has room
// for the pod.
func (w *podWorker) createPod(ctx context.Context, key string, api *corev1.Pod) error {
	if !w.mayCreate(ctx, key, api) {
		return nil
	}
	pod, err := w.prepareCopy(ctx, api)
	if err != nil {
		return newLaneError(api, "", fmt.Errorf("resolve the environment of pod %s: %w", key, err))
	}
	if now := w.pod(ctx, key); now == nil || now.UID != api.UID || now.DeletionTimestamp != nil {
		w.syncLane.Add(key) // the pod was deleted during the calls to the backend or the API server
		return nil
	}
	if err := w.fence.Allow(ctx); err != nil {
		return err
	}
	attempted := false // before
	w.states.sync(key, api.UID, func(st syncWriter) {
		attempted = st.sent.Attempted
		// This must come before the call: the provider may report at once, about the pod that it was handed.
		st.sent.Attempted, st.generation = true, api.Generation
		st.reflected = max(st.reflected, api.Generation)
		st.sent.AttemptedAt, st.sent.Shown = time.Now(), false
		if w.admission.fixedSizes() {
			st.sized = sizesOf(api)
		}
		if !attempted && st.all.report.matches(api.UID) {
			st.handed.addGiven(st.all.report.metadata) // before a restart
		}
		st.handed.addGiven(metadataOf(api))
		if was, _ := w.earlier.has(api.UID); was && st.copied == "" {
			st.copied = api.ResourceVersion // a late report may be about a pod from before the restart
		}
	})
	w.given.recordCreate(key, api.UID)
	if without := w.admission.unenforcedSettings(api); without != "" && !attempted {
		w.recorder.Event(api, corev1.EventTypeWarning, eventUnenforced, without)
	}
	began := time.Now()
	err = w.callAboutPod(ctx, key, api, "CreatePod", func(ctx context.Context) error { return w.backend.provider.CreatePod(ctx, pod) })
	// The time is recorded again: a call that took long may have made the pod at its end.
	w.states.sync(key, api.UID, func(st syncWriter) { st.sent.AttemptedAt = time.Now() })
	if err != nil {
		return w.createFailed(key, api, attempted, err)
	}
	w.recordAccepted(key, api)
	w.recorder.Event(api, corev1.EventTypeNormal, eventCreateSuccess, "the provider has accepted the pod")
	withDuration(podLog(ctx, key, api.UID), began, time.Millisecond).Info("the pod was created")
	return nil
}

// mayCreate reports whether the pod may be created. A pod for which the node has no room fails. So does a pod that
// needs a missing feature, if such pods are set to fail; otherwise it waits for a change.
func (w *podWorker) mayCreate(ctx context.Context, key string, api *corev1.Pod) bool {
	unsupported := w.admission.checkSupported(api)
	if unsupported != "" && !w.failUnsupported {
		w.showUnsupported(key, api, unsupported)
		return false
	}
	failure := &lifecycle.PodFailure{Reason: lifecycle.ReasonUnsupported, Message: unsupported}
	if unsupported == "" {
		failure = w.admission.admitPod(ctx, key, api)
	}
	if failure == nil {
		return true
	}
	w.failPod(key, api, failure)
	w.syncLane.Add(key)
	return false
}

// updatePod hands the changed pod to the backend. The status of this pod is the status that the provider itself
// reported last: many backends keep the pod as given.
func (w *podWorker) updatePod(ctx context.Context, key string, api *corev1.Pod, d lifecycle.Decision) error {
	pod, err := w.prepareCopy(ctx, api)
	if err != nil {
		return w.updateFailed(key, api, fmt.Errorf("resolve the environment of pod %s: %w", key, err))
	}
	if err := w.fence.Allow(ctx); err != nil {
		return err
	}
	w.states.sync(key, api.UID, func(st syncWriter) { // before the call, as in create
		st.sized.restoreSizes(pod)
		st.inheritMetadata(d.Backend)
		now := st.all.newestOf(api, time.Now())
		pod.Labels, pod.Annotations = st.all.withProviders(now)
		st.handed.addGiven(metadataOf(now))
		st.sent.Updating = true
		if st.all.report.matches(api.UID) {
			st.echo = st.all.report.status
			pod.Status = *st.echo.DeepCopy()
		} else if w.backend.starts {
			pod.Status = *api.Status.DeepCopy() // reports from before a restart, for example which containers had started
		}
	})
	if err := w.callAboutPod(ctx, key, api, "UpdatePod", func(ctx context.Context) error { return w.backend.provider.UpdatePod(ctx, pod) }); err != nil {
		return w.updateFailed(key, api, fmt.Errorf("update pod %s: %w", key, err))
	}
	w.recordAccepted(key, api)
	w.requestStatus(key)
	if !d.Unchanged {
		w.recorder.Event(api, corev1.EventTypeNormal, eventUpdateSuccess, "the provider has accepted the change")
	}
	return nil
}

// adoptPod takes over a pod that the backend has already, after a restart for example. If the pod was merely
// missing for a while, it is known what the backend was given.
func (w *podWorker) adoptPod(key string, api, backend *corev1.Pod) {
	if w.states.get(key).sent.Accepted {
		w.states.sync(key, api.UID, func(st syncWriter) {
			st.sent.MissingSince = time.Time{}
			st.clearError()
		})
		w.statusLane.Add(key)
		return
	}
	w.states.sync(key, api.UID, func(st syncWriter) {
		st.inheritMetadata(backend)
		st.handed.addGiven(metadata{maps.Clone(backend.Labels), maps.Clone(backend.Annotations)})
		st.handed.addGiven(metadataOf(api))
	})
	w.recordAccepted(key, api)
	w.requestStatus(key)
}

// stopPod asks the backend to stop a pod, and checks later whether the pod has stopped: when the end is reported or
// should have been reported, or at once if the provider does not report.
func (w *podWorker) stopPod(ctx context.Context, key string, api, backend *corev1.Pod) error {
	if err := w.fence.AllowStop(ctx); err != nil {
		return err
	}
	grace := lifecycle.StopGrace(api, w.states.get(key).failure)
	earlier, _ := w.earlier.has(api.UID)
	answered := false // the same request was answered before
	w.states.sync(key, api.UID, func(st syncWriter) {
		answered = (st.sent.StopAcked || st.sent.StopMissing) && st.sent.StopGrace == grace
		if backend != nil {
			// The pod may be from before a restart: the last report is about this pod.
			st.inheritMetadata(backend)
		}
		// The pod may have been started before a restart: a report by its name is about this pod.
		if backend != nil || earlier || lifecycle.HasRun(api) {
			st.sent.Attempted = true
		}
		if st.sent.StopAskedAt.IsZero() || st.sent.StopGrace != grace {
			st.askedAt = time.Now()
		}
		st.sent.StopAskedAt, st.sent.StopGrace, st.sent.StopAcked, st.sent.StopMissing = time.Now(), grace, false, false
		st.sent.GoneSince = time.Time{}
	})
	pod := api.DeepCopy()
	w.admission.withoutUnsupported(pod)     // a provider may keep the pod that it is given now
	pod.DeletionGracePeriodSeconds = &grace // also when the node itself stops it
	err := w.callAboutPod(ctx, key, api, "DeletePod", func(ctx context.Context) error { return w.backend.deletePod(ctx, pod) })
	w.statusLane.Add(key) // a terminal report may have waited for the request
	if err != nil && !errdefs.IsNotFound(err) {
		return newLaneError(api, eventDeleteFailed, fmt.Errorf("delete pod %s: %w", key, err))
	}
	w.states.sync(key, api.UID, func(st syncWriter) {
		st.sent.StopAcked, st.sent.StopMissing = err == nil, err != nil
		st.clearError()
	})
	if err != nil {
		w.relistNow() // a list that contains the pod contradicts the stop
	}
	if !answered {
		w.recorder.Event(api, corev1.EventTypeNormal, eventDeleteSuccess, "the provider has accepted the stop")
	}
	if w.backend.notifies {
		w.syncLane.AddAfter(key, lifecycle.ReportedWithin) // a report of the end arrives before that, or not at all
		return nil
	}
	w.syncLane.Add(key)
	w.pollSoon()
	return nil
}

// prepareCopy returns the private copy of a pod for the provider. Its environment is resolved, and it lacks the API
// server's status: a backend may keep the pod as given, and would hand this status back as news.
func (w *podWorker) prepareCopy(ctx context.Context, api *corev1.Pod) (*corev1.Pod, error) {
	pod := api.DeepCopy()
	w.admission.withoutUnsupported(pod)
	if !w.skipEnv && !w.backend.starts {
		if err := w.resolveCopy(ctx, pod); err != nil {
			return nil, err
		}
	}
	pod.Status = corev1.PodStatus{QOSClass: api.Status.QOSClass}
	return pod, nil
}

// resolveCopy fills in the environment of a private copy of a pod. It reads the named objects from the API server,
// which may not answer. A slow read lets other pods have the worker, and is given up in the end.
func (w *podWorker) resolveCopy(ctx context.Context, pod *corev1.Pod) error {
	defer time.AfterFunc(slowCall, func() { keyqueue.Yield(ctx) }).Stop()
	found := &warnings{}
	defer func() { w.sendWarnings(pod, found.found) }()
	return w.inputs.objects.resolveEnv(ctx, pod, found)
}
