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

// slowCall is the time after which a read of a pod's inputs frees its worker for another pod. For provider calls, providercall.Patience
// decides.
const slowCall = 10 * time.Second

// createPod calls CreatePod if the backend has the features that the pod needs and the node has the resources.
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
	attempted := false // whether CreatePod was called before
	w.states.sync(key, api.UID, func(st syncWriter) {
		attempted = st.sent.Attempted
		// Record this before the call, because the provider may report the pod at once.
		st.sent.Attempted, st.generation = true, api.Generation
		st.reflected = max(st.reflected, api.Generation)
		st.sent.AttemptedAt, st.sent.Shown = time.Now(), false
		if w.admission.fixedSizes() {
			st.sized = sizesOf(api)
		}
		if !attempted && st.all.report.matches(api.UID) {
			st.handed.addGiven(st.all.report.metadata) // from before a restart
		}
		st.handed.addGiven(metadataOf(api))
		if was, _ := w.earlier.has(api.UID); was && st.copied == "" {
			st.copied = api.ResourceVersion // a late report may have an older version, from before a restart
		}
	})
	w.given.recordCreate(key, api.UID)
	if without := w.admission.unenforcedSettings(api); without != "" && !attempted {
		w.recorder.Event(api, corev1.EventTypeWarning, eventUnenforced, without)
	}
	began := time.Now()
	err = w.callAboutPod(ctx, key, api, "CreatePod", func(ctx context.Context) error { return w.backend.provider.CreatePod(ctx, pod) })
	// Record the time again, because a slow call may have created the pod at its end.
	w.states.sync(key, api.UID, func(st syncWriter) { st.sent.AttemptedAt = time.Now() })
	if err != nil {
		return w.createFailed(key, api, attempted, err)
	}
	w.recordAccepted(key, api)
	w.recorder.Event(api, corev1.EventTypeNormal, eventCreateSuccess, "the provider has accepted the pod")
	withDuration(podLog(ctx, key, api.UID), began, time.Millisecond).Info("the pod was created")
	return nil
}

// mayCreate reports whether the pod may be created. A pod fails if the node lacks resources for it. A pod that needs a missing feature
// fails if FailUnsupported is set, else it waits for a change.
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

// updatePod calls UpdatePod for a changed pod. The given pod has the status that the provider reported last, because many backends store
// the pod as given.
func (w *podWorker) updatePod(ctx context.Context, key string, api *corev1.Pod, d lifecycle.Decision) error {
	pod, err := w.prepareCopy(ctx, api)
	if err != nil {
		return w.updateFailed(key, api, fmt.Errorf("resolve the environment of pod %s: %w", key, err))
	}
	if err := w.fence.Allow(ctx); err != nil {
		return err
	}
	w.states.sync(key, api.UID, func(st syncWriter) { // before the call, as in createPod
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
			pod.Status = *api.Status.DeepCopy() // the status from before a restart shows, for example, which containers had started
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

// adoptPod records that the backend has the pod, for example after a restart. If the pod was only missing for a while, its record is still
// valid.
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

// stopPod calls DeletePod, and schedules the check whether the pod has stopped: when the end is or should have been reported, or at once if
// the provider does not report.
func (w *podWorker) stopPod(ctx context.Context, key string, api, backend *corev1.Pod) error {
	if err := w.fence.AllowStop(ctx); err != nil {
		return err
	}
	grace := lifecycle.StopGrace(api, w.states.get(key).failure)
	earlier, _ := w.earlier.has(api.UID)
	answered := false // the same request was acknowledged before
	w.states.sync(key, api.UID, func(st syncWriter) {
		answered = (st.sent.StopAcked || st.sent.StopMissing) && st.sent.StopGrace == grace
		if backend != nil {
			// The pod may be from before a restart, so the last report is about this pod.
			st.inheritMetadata(backend)
		}
		// The pod may have been started before a restart, so a report with its name is about this pod.
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
	w.admission.withoutUnsupported(pod)     // a provider may store the pod that it receives now
	pod.DeletionGracePeriodSeconds = &grace // also if the node itself stops the pod
	err := w.callAboutPod(ctx, key, api, "DeletePod", func(ctx context.Context) error { return w.backend.deletePod(ctx, pod) })
	w.statusLane.Add(key) // a terminal report may have waited for this request
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
		w.syncLane.AddAfter(key, lifecycle.ReportedWithin) // a report of the end would arrive before that
		return nil
	}
	w.syncLane.Add(key)
	w.pollSoon()
	return nil
}

// prepareCopy returns the private copy of a pod for the provider. Its environment is resolved, and it lacks the API server's status: a
// backend may store the pod as given, and would then report this status as its own.
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

// resolveCopy resolves the environment of a private copy of a pod. It reads the referenced objects from the API server. A slow read frees
// the worker for other pods, and times out eventually.
func (w *podWorker) resolveCopy(ctx context.Context, pod *corev1.Pod) error {
	defer time.AfterFunc(slowCall, func() { keyqueue.Yield(ctx) }).Stop()
	found := &warnings{}
	defer func() { w.sendWarnings(pod, found.found) }()
	return w.inputs.objects.resolveEnv(ctx, pod, found)
}
