// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// askFor completes the facts with the answer for the decision, or with the recorded fact.
func (s *podSync) askFor(ctx context.Context, d lifecycle.Decision) error {
	f := &s.facts
	f.Taken.Add(d.Step)
	switch d.Step {
	case lifecycle.Look:
		s.lookAtBackend(ctx)
	case lifecycle.ReadLive:
		live, err := s.readLive(ctx, s.key)
		if err != nil {
			return newLaneError(s.api, eventFailedSync, fmt.Errorf("read pod %s from the API server before it is given up or deleted at the backend: %w", s.key, err))
		}
		f.Live = live
		if live != nil {
			s.findLive(live)
		}
	case lifecycle.Fail:
		if err := s.fence.Allow(ctx); err != nil { // the record of the loss must not outlive the term of the lease
			return err
		}
		s.failPod(s.key, s.api, lifecycle.Lose())
	case lifecycle.Recreate:
		if err := s.fence.Allow(ctx); err != nil {
			return err
		}
		s.recordLoss(ctx)
	default:
		panic(fmt.Sprintf("lifecycle step %d asks for nothing", d.Step))
	}
	return nil
}

// lookAtBackend asks the backend for the pods of the name, and adds the answer to the facts, and counts the pods that one side lacks.
func (s *podSync) lookAtBackend(ctx context.Context) {
	f := &s.facts
	f.Complete = s.backend.authority != nil && s.backend.isComplete(ctx) // before the call, so that the answer is complete too
	f.Own, f.Named, f.Doubtful = nil, nil, false
	s.silent = s.findAtBackend(ctx)
	if f.Silent = s.silent != nil; f.Silent {
		return
	}
	s.states.recordAnswer(s.key, f.Own == nil && f.Named == nil)
	switch {
	case f.Own != nil:
		s.noteOwn(ctx)
	case f.Named == nil:
		s.given.recordDenied(s.key)
		s.dropOlderSecrets(s.key, f.Sent.UID)
	}
	if f.Own == nil && s.api != nil {
		f.Held, f.Unlisted = s.countMissing(ctx), !s.missing.hasList()
	}
	f.OrphanHeld = s.countOrphans(ctx)
}

// findAtBackend completes the facts with the pods that the backend has under the key. It returns an error if the backend did not answer,
// for example after a panic or a timeout. Only a not-found error is an answer. After any other error a list decides, because many providers
// return such an error for a pod that they do not have. An empty list may be a failed answer too.
func (s *podSync) findAtBackend(ctx context.Context) error {
	pod, err := s.backend.getPod(ctx, s.key)
	var panicked *providercall.Panic
	switch {
	case errdefs.IsNotFound(err), err == nil && (pod == nil || s.backend.isForeign(pod)):
		return nil
	case err == nil && s.isEnough(pod):
		s.takePods([]*corev1.Pod{pod})
		return nil
	case errors.As(err, &panicked), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err // the backend did not answer
	}
	asked := time.Now()
	pods, listErr := s.backend.listPods(ctx)
	if listErr != nil {
		s.missing.restartAll(time.Now())
		if pod == nil {
			return errors.Join(err, listErr)
		}
		pods = nil
	}
	s.facts.Doubtful = len(pods) == 0 || pod != nil && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.UID == pod.UID })
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return keyOf(p) != s.key })
	if pod != nil {
		pods = append(pods, pod)
	}
	s.takePods(pods)
	if listErr == nil {
		s.states.dropUnlisted(s.key, pods, asked)
	}
	return nil
}

// isEnough reports whether no list is needed after the backend returned the pod: it is the wanted pod, or no pod is wanted and it must
// stop. Otherwise the backend may also have the wanted pod, or a pod that must stop, under the same name.
func (s *podSync) isEnough(pod *corev1.Pod) bool {
	if s.api != nil {
		return lifecycle.SamePod(s.api, pod)
	}
	st := s.states.get(s.key)
	return !st.keepsEnded(pod)
}

// takePods adds the backend's pods of the name to the facts, and records the pods that are not the wanted pod.
func (s *podSync) takePods(pods []*corev1.Pod) {
	wanted := types.UID("")
	if s.api != nil {
		wanted = s.api.UID
	}
	for _, pod := range pods {
		switch {
		case pod.UID != wanted:
			s.facts.Named = pod
		case s.facts.Own == nil:
			s.facts.Own = pod
		}
	}
	s.states.showOthers(s.key, wanted, pods)
}

// noteOwn records that the backend has shown the wanted pod, and records the end of the pod if no report has.
func (s *podSync) noteOwn(ctx context.Context) {
	f := &s.facts
	s.missing.showPod(s.key, f.Now)
	if !f.Sent.Shown || !f.Sent.GoneSince.IsZero() {
		s.states.sync(s.key, s.api.UID, func(st syncWriter) { st.sent.Shown, st.sent.GoneSince = true, time.Time{} })
	}
	if st := s.states.get(s.key); lifecycle.Terminal(&f.Own.Status) && !st.isFinished(s.api.UID) {
		s.reports.handleReport(ctx, s.api, &report{uid: f.Own.UID, status: f.Own.Status.DeepCopy(), polled: true, after: st.report})
	}
}

// findLive compares the other pods of the name with the pod that a live read returned. If one of them is this pod, it is not an orphan.
func (s *podSync) findLive(live *corev1.Pod) {
	s.given.supposeGiven(s.key, live.UID)
	for _, o := range s.facts.Others {
		if o.Pod != nil && s.given.stampUID(o.Pod, live).UID == live.UID {
			s.states.changeOther(s.key, o.UID, func(o *lifecycle.Other) { o.UID, o.Since, o.Deleted = live.UID, s.facts.Now, false })
			s.orphans.showPod(s.key, s.facts.Now)
		}
	}
}

// countMissing counts the wanted pod among the pods that the backend lacks, if the backend should have it. It returns the time until the
// absence may count as evidence.
func (s *podSync) countMissing(ctx context.Context) time.Duration {
	f, st := &s.facts, s.states.get(s.key)
	if s.backend.authority != nil {
		if !f.Complete {
			return lookAgain
		}
		return 0
	}
	switch {
	case st.isFinished(s.api.UID) || st.relistedAgain():
		s.missing.forgetPod(s.key)
	case !lifecycle.Missed(s.api, &f.Sent, f.Failure):
		s.missing.releaseUnwanted(s.key, f.Now)
	default:
		s.missing.noteMissing(s.key, f.Now, true, lifecycle.Young(&f.Sent, f.Visible, f.Now))
	}
	return s.missing.holdFor(ctx, s.key, f.DoubtfulAbsence(), f.Now)
}

// countOrphans counts the name among the orphans if a pod at the backend seems to be one. It returns the time until the absence in the API
// server may count as evidence.
func (s *podSync) countOrphans(ctx context.Context) time.Duration {
	f := &s.facts
	if f.Others = s.states.get(s.key).others; !f.HasOrphan() {
		s.orphans.forgetPod(s.key)
		return 0
	}
	s.orphans.noteMissing(s.key, f.Now, true, false)
	return s.orphans.holdFor(ctx, s.key, false, f.Now)
}

// recordLoss records that the backend lost the pod and must create it again.
func (s *podSync) recordLoss(ctx context.Context) {
	const message = "the backend no longer has the pod; creating it again"
	log.G(ctx).Warn(message)
	s.recorder.Event(s.api, corev1.EventTypeWarning, eventPodLost, message)
	s.states.sync(s.key, s.api.UID, func(st syncWriter) {
		st.sent.Accepted, st.sent.Recreate, st.sent.MissingSince = false, true, time.Time{}
	})
}
