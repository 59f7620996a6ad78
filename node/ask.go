// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// ask completes the facts with the answer for the decision, or with the recorded fact.
func (s *podSync) ask(ctx context.Context, d lifecycle.Decision) error {
	f := &s.facts
	f.Taken.Add(d.Step)
	switch d.Step {
	case lifecycle.AskByName:
		f.Complete = s.backend.authority != nil && s.backend.complete(ctx) // before the call: the answer is then complete, too
		s.silent = s.lookup(ctx)
		f.Silent = s.silent != nil
		if !f.Silent {
			s.states.asked(s.key, f.Backend == nil)
			if f.Backend == nil {
				s.given.deny(s.key)
				s.dropOlderSecrets(s.key, f.Sent.UID)
			}
		}
	case lifecycle.AskAll:
		pods, err := s.backend.listPods(ctx)
		if err != nil {
			about := s.api
			if about != nil && lifecycle.Terminal(&about.Status) {
				about = nil // the error is about another pod of the name
			}
			return newLaneError(about, eventFailedSync, fmt.Errorf("ask the provider for all pods, to tell those of the name %s apart: %w", s.key, err))
		}
		f.Pods = pods
	case lifecycle.ReadLive:
		live, err := s.live(ctx, s.key)
		if err != nil {
			return newLaneError(s.api, eventFailedSync, fmt.Errorf("read pod %s from the API server before it is given up or deleted at the backend: %w", s.key, err))
		}
		f.Live = live
		if live != nil && f.Backend != nil {
			s.given.suppose(s.key, live.UID)
			f.Backend = s.given.stamp(f.Backend, live)
		}
	case lifecycle.Admit:
		if f.Unsupported = s.admission.checkSupported(s.api); f.Unsupported == "" {
			f.NoRoom = s.admission.admit(ctx, s.key, s.api)
		}
	case lifecycle.CountMissing:
		f.Held, f.Unlisted = s.countMissing(ctx), !s.missing.hasList()
	case lifecycle.CountOrphan:
		f.OrphanHeld = s.countOrphan(ctx, d.Backend)
	case lifecycle.TakeEnd:
		st := s.states.get(s.key)
		s.reports.take(ctx, s.api, &report{uid: d.Backend.UID, status: d.Backend.Status.DeepCopy(), polled: true, after: st.report})
	case lifecycle.Fail:
		if d.Failure.Reason == lifecycle.ReasonLost {
			if err := s.fence.Allow(ctx); err != nil { // the record of the loss must not outlive the term
				return err
			}
		}
		s.fail(s.key, s.api, d.Failure)
	case lifecycle.BeginOrphan:
		s.states.sync(s.key, anyPod, func(st syncWriter) { st.orphan = lifecycle.NewOrphan(d.Backend.UID, &st.sent, f.Now) })
	case lifecycle.Recreate:
		if err := s.fence.Allow(ctx); err != nil {
			return err
		}
		s.recreate(ctx)
	default:
		panic(fmt.Sprintf("lifecycle step %d asks for nothing", d.Step))
	}
	return nil
}

// countMissing counts the wanted pod among the pods that the backend lacks, if the backend should have it. It
// returns how long this must not lead to a conclusion.
func (s *podSync) countMissing(ctx context.Context) time.Duration {
	f, st := &s.facts, s.states.get(s.key)
	if s.backend.authority != nil {
		if !f.Complete {
			return lookAgain
		}
		return 0
	}
	switch {
	case f.Finished || st.relistedAgain():
		s.missing.forget(s.key)
	case !lifecycle.Missed(s.api, &f.Sent, f.Failure):
		s.missing.leave(s.key, f.Now)
	default:
		s.missing.note(s.key, f.Now, true, lifecycle.Young(&f.Sent, f.Visible, f.Now))
	}
	return s.missing.hold(ctx, s.key, f.DoubtfulAbsence(), f.Now)
}

// countOrphan counts the backend's pod among the pods that the API server lacks, and returns how long this must
// not lead to a conclusion. The pod does not count in three cases: its deletion was seen, the wanted pod of its
// name runs beside it, or it has ended and so has nothing to lose.
func (s *podSync) countOrphan(ctx context.Context, backend *corev1.Pod) time.Duration {
	if s.facts.SeenDeleted(backend) || s.facts.IsBeside(backend) || lifecycle.Terminal(&backend.Status) {
		s.orphans.forget(s.key)
		return 0
	}
	s.orphans.note(s.key, s.facts.Now, true, false)
	return s.orphans.hold(ctx, s.key, false, s.facts.Now)
}

// recreate records that the backend lost the pod and must create it again.
func (s *podSync) recreate(ctx context.Context) {
	const message = "the backend no longer has the pod; creating it again"
	log.G(ctx).Warn(message)
	s.recorder.Event(s.api, corev1.EventTypeWarning, eventPodLost, message)
	s.states.sync(s.key, s.api.UID, func(st syncWriter) {
		st.sent.Accepted, st.sent.Recreate, st.sent.MissingSince = false, true, time.Time{}
	})
}

// lookup completes the facts with the pod that the backend has under the key, or nil. An error means that the
// answer is unknown: a panic or a time-out is no answer, and only a not-found error is an answer. After any
// other error the list decides, see lifecycle.FoundInList.
func (s *podSync) lookup(ctx context.Context) error {
	pod, err := s.backend.getPod(ctx, s.key)
	f := &s.facts
	f.Backend, f.Doubtful = nil, false
	var panicked *providercall.Panic
	switch {
	case err == nil && pod != nil && s.backend.foreign(pod):
		return nil
	case err == nil:
		f.Backend = pod
		return nil
	case errdefs.IsNotFound(err):
		return nil
	case errors.As(err, &panicked), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err // no answer at all
	}
	pods, listErr := s.backend.listPods(ctx)
	if listErr != nil {
		s.missing.silence(time.Now())
		return errors.Join(err, listErr)
	}
	wanted := types.UID("")
	if s.api != nil {
		wanted = s.api.UID
	}
	namespace, name, _ := cache.SplitMetaNamespaceKey(s.key)
	listed, doubtful, shared := lifecycle.FoundInList(pods, namespace, name, wanted)
	f.Backend, f.Doubtful = listed, doubtful
	if shared {
		s.states.share(s.key, wanted)
	}
	return nil
}
