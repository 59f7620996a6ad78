// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
)

// syncPod makes the backend match the API server for one pod. It gathers the known facts, lets lifecycle.Next
// decide and takes the step, until no question is left. It is the only code that creates, updates and deletes
// pods at the provider.
func (w *podWorker) syncPod(ctx context.Context, key string) (class int, err error) {
	ctx, span := trace.StartSpan(ctx, "syncPod")
	defer func() { span.SetStatus(err); span.End() }()
	s := &podSync{podWorker: w, key: key}
	ctx = span.WithField(ctx, "pod", s.key)

	s.track(ctx)
	if s.api != nil {
		ctx = span.WithField(ctx, "podUID", string(s.api.UID))
	}
	for range maxSteps {
		if !s.gather() {
			w.syncLane.Add(key) // with the current facts
			return 0, nil
		}
		d := lifecycle.Next(&s.facts)
		s.note(d)
		if d.Step != lifecycle.Rest || s.facts.Taken.Has(lifecycle.AskByName) {
			log.G(ctx).Debugf("decided: %v, because %v", d.Step, &s.facts)
		}
		if !d.Step.Asks() {
			return 0, s.do(ctx, d)
		}
		if err := s.ask(ctx, d); err != nil {
			return 0, err
		}
	}
	return 0, newLaneError(s.api, eventFailedSync, fmt.Errorf("decide about pod %s: nothing is decided after %d steps", key, maxSteps))
}

// maxSteps bounds a pass. There are fewer steps that ask, and each is taken once. A rule that repeats a step
// must not block a worker.
const maxSteps = 16

// track begins the work on the pod, and records the resources that the pod takes from the node.
func (s *podSync) track(ctx context.Context) {
	s.api = s.pod(ctx, s.key)
	if s.api == nil {
		return
	}
	s.tracker.startTracking(s.key, s.api)
	s.inputs.track(s.api)
	st := s.states.get(s.key)
	s.admission.reserve(s.api, st.sent)
	s.admission.size(s.key, s.api, st)
}

// gather completes the facts with the state in memory. It returns false when the state belongs to another pod,
// or was dropped meanwhile: a report began the state of the next pod of the name, or another process acted for
// the node. Answers of this pass stay.
func (s *podSync) gather() bool {
	f := &s.facts
	st, tracked := s.states.find(s.key)
	if s.api != nil && st.sent.UID != s.api.UID || f.Taken.Has(lifecycle.AskByName) && !tracked {
		return false
	}
	f.Now = time.Now()
	f.API, f.Sent, f.Told, f.Failure = s.api, st.sent, st.told(s.api), st.failure
	f.Stopped, f.Over, f.Suspect = st.stopped, st.over, st.suspect
	f.Others = st.others()
	s.held = st.held
	f.Reports, f.Retell = s.backend.notifies, s.backend.starts
	f.OS, f.Draining, f.FailUnsupported = s.os, s.draining.Load(), s.failUnsupported
	f.Turn, f.Deadline = st.turn, time.Time{}
	f.LackedAt, f.Listed = st.lackedAt, st.reappeared()
	if s.api == nil {
		return true
	}
	f.Finished, f.Relapsed, f.Runs = st.finished(s.api.UID), st.relapsed, st.runs(s.api.UID)
	f.Earlier, f.Began = s.earlier.has(s.api.UID)
	f.Visible = s.visibleWithin(s.api, &st)
	f.Deadline = s.deadlines.deadlineOf(s.key, s.api, &st)
	return true
}

// note records the news of a decision besides its step.
func (s *podSync) note(d lifecycle.Decision) {
	if d.Shared {
		s.states.share(s.key, s.api.UID)
	}
	if d.Shown {
		s.missing.show(s.key, s.facts.Now)
		if sent := &s.facts.Sent; (!sent.Shown || !sent.GoneSince.IsZero()) && lifecycle.SamePod(s.api, d.Backend) {
			s.states.sync(s.key, s.api.UID, func(st syncWriter) { st.sent.Shown, st.sent.GoneSince = true, time.Time{} })
		}
	}
	if d.Orphan != lifecycle.OrphanKept && s.facts.Orphan.Present {
		s.noOrphan(d.Orphan == lifecycle.OrphanWanted)
	}
	if d.Again > 0 {
		s.syncLane.AddAfter(s.key, d.Again)
	}
}

// noOrphan drops the record of a pod that only the backend had: the pod is wanted after all, or gone.
func (s *podSync) noOrphan(wanted bool) {
	s.states.sync(s.key, anyPod, func(st syncWriter) { st.orphan = lifecycle.Orphan{} })
	if wanted {
		s.orphans.show(s.key, s.facts.Now)
	} else {
		s.orphans.forget(s.key)
	}
}

// do takes the step that ends the pass.
func (s *podSync) do(ctx context.Context, d lifecycle.Decision) error {
	if s.facts.Taken.Has(lifecycle.AskByName) || d.Step == lifecycle.Stop { // a look at a pod at rest does not count as work
		defer observeWork(d.Step, time.Now())
	}
	key, api := s.key, s.api
	switch d.Step {
	case lifecycle.Wait:
		s.tellBehind(d.Backend)
	case lifecycle.Forget:
		s.tracker.forget(key)
	case lifecycle.Release:
		s.dropLeft()
		s.tracker.forgetObjects(key, s.facts.Sent.UID)
	case lifecycle.Retry:
		return newLaneError(api, eventFailedSync, fmt.Errorf("ask the provider for pod %s: %w", key, s.silent))
	case lifecycle.Unsupported:
		s.unsupported(key, api, s.facts.Unsupported)
	case lifecycle.Create:
		s.dropLeft()
		return s.create(ctx, key, api)
	case lifecycle.Update:
		return s.update(ctx, key, api, d)
	case lifecycle.Adopt:
		s.adopt(key, api, d.Backend)
	case lifecycle.Stop:
		return s.stop(ctx, key, api, d.Backend)
	case lifecycle.Stopped:
		s.stopped(d.Backend)
	case lifecycle.Gone:
		s.states.sync(key, api.UID, func(st syncWriter) { st.sent.GoneSince = time.Now() })
	case lifecycle.Missing:
		s.states.sync(key, api.UID, func(st syncWriter) { st.sent.MissingSince = time.Now() })
		s.relistNow() // a list that contains the pod contradicts the loss
	case lifecycle.Relist:
		s.relistNow()
	case lifecycle.DeleteOrphan:
		return s.deleteOrphan(ctx, key, api, d.Backend)
	default:
		s.rest()
		s.tellHeld()
	}
	return nil
}

// stopped records that the backend has confirmed the stop, and whether the backend keeps the pod.
func (s *podSync) stopped(backend *corev1.Pod) {
	s.secrets.End(s.api.UID)
	s.states.sync(s.key, s.api.UID, func(st syncWriter) {
		st.stopped = true
		st.over = lifecycle.Terminal(&s.api.Status)
		st.unkeep(s.api.UID)
		if backend != nil {
			st.keep(s.api.UID)
		}
	})
	s.statusLane.Add(s.key)
}

// dropLeft forgets the left pods that the backend no longer keeps. A pod that GetPod returns stays, even if the
// list lacks it.
func (s *podSync) dropLeft() {
	if !s.facts.Taken.Has(lifecycle.AskAll) {
		return
	}
	s.states.sync(s.key, anyPod, func(st syncWriter) {
		st.left = slices.DeleteFunc(slices.Clone(st.left), func(uid types.UID) bool {
			return uid != s.facts.Backend.UID && !slices.ContainsFunc(s.facts.Pods, func(p *corev1.Pod) bool { return p.UID == uid })
		})
	})
}

// rest ends the work on a pod for now: its sync error is over.
func (s *podSync) rest() {
	if lifecycle.Terminal(&s.api.Status) && !s.facts.Over {
		s.secrets.End(s.api.UID)
		s.states.sync(s.key, s.api.UID, func(st syncWriter) { st.over = true })
	}
	s.clearSyncError(s.key)
}
