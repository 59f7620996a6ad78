// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
)

// syncPod makes the backend match the API server for one pod. It gathers the known facts and takes the steps that lifecycle.Next decides,
// until no decision follows. It is the only code that creates, updates and deletes pods at the provider.
func (w *podWorker) syncPod(ctx context.Context, key string) (class int, err error) {
	ctx, span := trace.StartSpan(ctx, "syncPod")
	defer func() { span.SetStatus(err); span.End() }()
	s := &podSync{podWorker: w, key: key}
	ctx = span.WithField(ctx, "pod", s.key)

	s.trackPod(ctx)
	if s.api != nil {
		ctx = span.WithField(ctx, "podUID", string(s.api.UID))
	}
	for range maxSteps {
		if !s.gatherFacts() {
			w.syncLane.Add(key) // retry with the current facts
			return 0, nil
		}
		if failure := s.limits.NextFailure(&s.facts); failure != nil {
			s.failPod(key, s.api, failure)
			continue
		}
		d := lifecycle.Next(&s.facts)
		for _, pause := range []time.Duration{d.Again, s.limits.UntilDeadline(&s.facts)} {
			if pause > 0 {
				s.syncLane.AddAfter(key, pause)
			}
		}
		if d.Step != lifecycle.Rest || s.facts.Taken.Has(lifecycle.Look) {
			log.G(ctx).Debugf("decided: %v, because %v", d.Step, &s.facts)
		}
		if !d.Step.Asks() {
			return 0, s.takeStep(ctx, d)
		}
		if err := s.askFor(ctx, d); err != nil {
			return 0, err
		}
	}
	return 0, newLaneError(s.api, eventFailedSync, fmt.Errorf("decide about pod %s: nothing is decided after %d steps", key, maxSteps))
}

// maxSteps bounds the steps of a pass. A correct pass needs fewer steps; the limit prevents that a rule that repeats a step blocks a
// worker.
const maxSteps = 16

// trackPod starts the work on the pod, and records the resources that the pod uses.
func (s *podSync) trackPod(ctx context.Context) {
	s.api = s.pod(ctx, s.key)
	if s.api == nil {
		return
	}
	s.tracker.startTracking(s.key, s.api)
	s.inputs.trackObjects(s.api)
	st := s.states.get(s.key)
	s.admission.reserveRoom(s.api, st.sent)
	s.admission.recordSizes(s.key, s.api, st)
}

// gatherFacts completes the facts with the state in memory. It returns false if the state now belongs to another pod or was dropped,
// because a report started the state of the next pod of the name, or another process acted for the node. Answers of this pass are kept.
func (s *podSync) gatherFacts() bool {
	f := &s.facts
	st, tracked := s.states.findState(s.key)
	ofAnother := s.api != nil && st.sent.UID != s.api.UID
	if ofAnother || f.Taken.Has(lifecycle.Look) && !tracked {
		return false
	}
	f.Now = time.Now()
	f.API, f.Sent, f.Failure = s.api, st.sent, st.failure
	f.Stopped, f.Over, f.Suspect = st.stopped, st.over, st.suspect
	f.Others = st.others
	s.held = st.held
	f.Reports, f.Retell = s.backend.notifies, s.backend.starts
	f.LackedAt, f.Listed = st.lackedAt, st.hasReappeared()
	s.limits = lifecycle.Limits{OS: s.os, Draining: s.draining.Load(), Turn: st.turn}
	if s.api == nil {
		return true
	}
	told := st.toldMetadata(s.api)
	f.Outdated = st.sent.Accepted && lifecycle.IsOutdated(s.api, &st.sent, &told)
	f.Reported = st.reportedAs(s.api.UID)
	if earlier, began := s.earlier.has(s.api.UID); earlier {
		f.TakenOver = began
	}
	f.Visible = s.visibleWithin(s.api, &st)
	s.limits.Deadline = s.deadlines.deadlineOf(s.key, s.api, &st)
	return true
}

// takeStep takes the step that ends the pass.
func (s *podSync) takeStep(ctx context.Context, d lifecycle.Decision) error {
	if s.facts.Taken.Has(lifecycle.Look) || d.Step == lifecycle.Stop { // a lookup for a pod at rest does not count as work
		defer observeWork(d.Step, time.Now())
	}
	key, api := s.key, s.api
	switch d.Step {
	case lifecycle.Wait:
		s.tellBehind(d.Backend)
	case lifecycle.Forget:
		s.tracker.forgetName(key)
	case lifecycle.Retry:
		return newLaneError(api, eventFailedSync, fmt.Errorf("ask the provider for pod %s: %w", key, s.silent))
	case lifecycle.Create:
		return s.createPod(ctx, key, api)
	case lifecycle.Update:
		return s.updatePod(ctx, key, api, d)
	case lifecycle.Adopt:
		s.adoptPod(key, api, d.Backend)
	case lifecycle.Stop:
		return s.stopPod(ctx, key, api, d.Backend)
	case lifecycle.Stopped:
		s.recordStopped(d.Backend)
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
		s.endWork()
		s.tellHeld()
	}
	return nil
}

// recordStopped records that the backend has confirmed the stop, and whether the backend keeps the pod.
func (s *podSync) recordStopped(backend *corev1.Pod) {
	s.secrets.End(s.api.UID)
	s.states.sync(s.key, s.api.UID, func(st syncWriter) { st.stopped, st.over = true, lifecycle.Terminal(&s.api.Status) })
	if backend != nil {
		s.states.changeOther(s.key, s.api.UID, func(o *lifecycle.Other) { o.Pod, o.Since, o.Asked = backend, time.Now(), s.facts.Sent.StopAskedAt })
	}
	s.statusLane.Add(s.key)
}

// endWork ends the work on a pod for now, because its sync error is resolved.
func (s *podSync) endWork() {
	if lifecycle.Terminal(&s.api.Status) && !s.facts.Over {
		s.secrets.End(s.api.UID)
		s.states.sync(s.key, s.api.UID, func(st syncWriter) { st.over = true })
	}
	s.clearSyncError(s.key)
}
