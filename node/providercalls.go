// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/keyqueue"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podenv"
)

// create gives a pod to the backend.
func (c *PodController) create(ctx context.Context, key string, api *corev1.Pod) error {
	pod, err := c.prepare(ctx, api)
	if err != nil {
		return newLaneError(api, "", fmt.Errorf("resolve the environment of pod %s: %w", key, err))
	}
	if now := c.pod(ctx, key); now == nil || now.UID != api.UID || now.DeletionTimestamp != nil {
		c.syncLane.Add(key) // it was deleted while the backend or the API server was asked
		return nil
	}
	if err := c.fence.Allow(ctx); err != nil {
		return err
	}
	attempted := false // before
	c.states.sync(key, api.UID, func(st syncWriter) {
		attempted = st.sent.Attempted
		// All before the call: it may report at once, on what it was handed.
		st.sent.Attempted, st.sent.Generation = true, api.Generation
		st.reflected = max(st.reflected, api.Generation)
		st.sent.AttemptedAt, st.sent.Shown = time.Now(), false
		if c.fixedSizes() {
			st.sized = sizesOf(api)
		}
		if !attempted && st.all.report.matches(api.UID) {
			st.handed.add(st.all.report.metadata) // before a restart
		}
		st.handed.add(metadataOf(api))
		if was, _ := c.earlier.has(api.UID); was && st.copied == "" {
			st.copied = api.ResourceVersion // a late report may be of what was created before the restart
		}
	})
	err = c.call(ctx, key, api, "CreatePod", func(ctx context.Context) error { return c.provider.CreatePod(ctx, pod) })
	// Again: a call that took long may have made the pod at its end.
	c.states.sync(key, api.UID, func(st syncWriter) { st.sent.AttemptedAt = time.Now() })
	if err != nil {
		return c.createFailed(key, api, attempted, err)
	}
	c.accepted(key, api)
	c.recorder.Event(api, corev1.EventTypeNormal, eventCreateSuccess, "the provider has accepted the pod")
	return nil
}

// update tells the backend of a changed pod, whose status is what the provider
// itself reported last: many keep the pod as it is given.
func (c *PodController) update(ctx context.Context, key string, api, backend *corev1.Pod) error {
	pod, err := c.prepare(ctx, api)
	if err != nil {
		return c.updateFailed(key, api, fmt.Errorf("resolve the environment of pod %s: %w", key, err))
	}
	if err := c.fence.Allow(ctx); err != nil {
		return err
	}
	c.states.sync(key, api.UID, func(st syncWriter) { // before the call, as in create
		st.sized.restore(pod)
		st.inherit(backend)
		now := st.all.newer(api, time.Now())
		pod.Labels, pod.Annotations = st.all.withProviders(now)
		st.handed.add(metadataOf(now))
		st.sent.Updating = true
		if st.all.report.matches(api.UID) {
			st.echo = st.all.report.status
			pod.Status = *st.echo.DeepCopy()
		} else if c.starts {
			pod.Status = *api.Status.DeepCopy() // what was reported before a restart: which containers had started, for example
		}
	})
	if err := c.call(ctx, key, api, "UpdatePod", func(ctx context.Context) error { return c.provider.UpdatePod(ctx, pod) }); err != nil {
		return c.updateFailed(key, api, fmt.Errorf("update pod %s: %w", key, err))
	}
	c.accepted(key, api)
	c.learn(key)
	c.recorder.Event(api, corev1.EventTypeNormal, eventUpdateSuccess, "the provider has accepted the change")
	return nil
}

// adopt takes over a pod that the backend has already, after a restart for
// example. Of one that was merely missing for a while it is known what the backend was given.
func (c *PodController) adopt(key string, api, backend *corev1.Pod) {
	if c.states.get(key).sent.Accepted {
		c.states.sync(key, api.UID, func(st syncWriter) {
			st.sent.MissingSince = time.Time{}
			st.clearError()
		})
		c.statusLane.Add(key)
		return
	}
	c.states.sync(key, api.UID, func(st syncWriter) {
		st.inherit(backend)
		st.handed.add(metadata{maps.Clone(backend.Labels), maps.Clone(backend.Annotations)})
		st.handed.add(metadataOf(api))
	})
	c.accepted(key, api)
	c.learn(key)
}

// accepted notes that the backend has the pod as it is in api.
func (c *PodController) accepted(key string, api *corev1.Pod) {
	gone, first := types.UID(""), false
	c.states.sync(key, api.UID, func(st syncWriter) {
		gone, first = st.previous, !st.sent.Accepted
		st.sent.Attempted, st.sent.Accepted, st.sent.Recreate = true, true, false
		st.sent.AcceptedAt, st.sent.MissingSince = time.Now(), time.Time{}
		st.sent.Updating = false
		st.sent.Generation, st.sent.SpecVersion = api.Generation, lifecycle.SpecVersion(api)
		st.previous, st.left = "", nil
		st.askedAt = st.sent.AcceptedAt
		st.clearError()
	})
	c.secrets.Drop(gone)
	if first {
		c.orphans.oneMore()
		c.lost.oneMore()
	}
	c.statusLane.Add(key)
	if !c.notifies {
		c.pollLane.Add(key)
		c.pollSoon()
	}
}

// learn asks for the status of a pod that was found at the backend, if the
// provider has not reported it: it may have done so before a restart. It also asks for
// that of a pod that was changed, if what was told may be from before the change.
func (c *PodController) learn(key string) {
	if st := c.states.get(key); !st.report.matches(st.sent.UID) || st.reflected < st.sent.Generation {
		c.pollLane.Add(key)
	}
}

// stop asks the backend to stop a pod, and looks whether it has: when that is reported or could have been, or at once if the
// provider does not report.
func (c *PodController) stop(ctx context.Context, key string, api, backend *corev1.Pod) error {
	if err := c.fence.AllowStop(ctx); err != nil {
		return err
	}
	grace := lifecycle.StopGrace(api, c.states.get(key).failure)
	earlier, _ := c.earlier.has(api.UID)
	c.states.sync(key, api.UID, func(st syncWriter) {
		if backend != nil {
			// From before a restart, perhaps: what it says last is about this pod.
			st.inherit(backend)
		}
		// It may have been started before a restart: a report by its name is about this pod.
		st.sent.Attempted = st.sent.Attempted || backend != nil || earlier || lifecycle.HasRun(api)
		if st.sent.StopAskedAt.IsZero() || st.sent.StopGrace != grace {
			st.askedAt = time.Now()
		}
		st.sent.StopAskedAt, st.sent.StopGrace, st.sent.StopAcked, st.sent.StopMissing = time.Now(), grace, false, false
		st.sent.GoneSince = time.Time{}
	})
	pod := api.DeepCopy()
	pod.DeletionGracePeriodSeconds = &grace // also when the node itself stops it
	err := c.call(ctx, key, api, "DeletePod", func(ctx context.Context) error { return c.provider.DeletePod(ctx, pod) })
	c.statusLane.Add(key) // a terminal report may have waited for the request
	if err != nil && !errdefs.IsNotFound(err) {
		return newLaneError(api, eventDeleteFailed, fmt.Errorf("delete pod %s: %w", key, err))
	}
	c.states.sync(key, api.UID, func(st syncWriter) {
		st.sent.StopAcked, st.sent.StopMissing = err == nil, err != nil
		st.clearError()
	})
	if err != nil {
		c.relistNow() // a list that has it speaks against the stop
	}
	c.recorder.Event(api, corev1.EventTypeNormal, eventDeleteSuccess, "the provider has accepted the stop")
	if c.notifies {
		c.syncLane.AddAfter(key, lifecycle.ReportedWithin) // the report of its end comes before, or none does
		return nil
	}
	c.syncLane.Add(key)
	c.pollSoon()
	return nil
}

// prepare returns the private copy of a pod that a provider is given: with its
// environment resolved, and without the API server's status: a backend that keeps
// the pod as given would hand it back as news.
func (c *PodController) prepare(ctx context.Context, api *corev1.Pod) (*corev1.Pod, error) {
	pod := api.DeepCopy()
	c.withoutUnsupported(pod)
	if !c.skipEnv && !c.starts {
		if err := c.resolve(ctx, pod); err != nil {
			return nil, err
		}
	}
	pod.Status = corev1.PodStatus{QOSClass: api.Status.QOSClass}
	return pod, nil
}

// resolve fills in the environment of a private copy of a pod. What it names is
// read from the API server, which may not answer: a read that takes long lets
// others have the worker, and is given up in the end.
func (c *PodController) resolve(ctx context.Context, pod *corev1.Pod) error {
	defer time.AfterFunc(slowCall, func() { keyqueue.Yield(ctx) }).Stop()
	bounded, cancel := context.WithTimeout(ctx, podRequestTimeout)
	defer cancel()
	env, found := c.env, &warnings{}
	env.Objects, env.Recorder = objectsOf{c, pod.UID}, found
	defer func() { c.warn(pod, found.held) }()
	return podenv.Resolve(bounded, env, pod)
}
