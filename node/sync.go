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
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
)

// syncPod brings the backend to what the API server wants for one pod. It is
// the only code that creates, updates and deletes pods at the provider.
func (c *PodController) syncPod(ctx context.Context, key string) (class int, err error) {
	ctx, span := trace.StartSpan(ctx, "syncPod")
	defer func() { span.SetStatus(err); span.End() }()
	ctx = span.WithField(ctx, "pod", key)

	api := c.pod(ctx, key)
	if api != nil {
		c.startTracking(key, api)
		if c.store != nil {
			c.store.Track(api)
		}
		c.secrets.Admit(api)
		c.judge(key, api)
	}
	st := c.states.get(key)
	if api != nil {
		c.reserve(api, st.sent)
		c.size(key, api, st)
	}
	switch {
	case api == nil && st.stopped && st.previous == "" && st.left == nil && !st.orphan.present:
		c.rest(key, api)
		return 0, nil
	case !st.suspect && (st.isOver(api) || st.isRemovable(api) || lifecycle.Quiet(api, st.sent, st.told(api), st.failure != nil)):
		c.noOrphan(key, st, true)
		if st.isOver(api) {
			c.secrets.End(api.UID)
		}
		if st.duplicate != nil {
			if err := c.removeDuplicate(ctx, key, api, st.duplicate); err != nil {
				return 0, err
			}
		}
		c.rest(key, api)
		return 0, nil
	}
	if st.stopsUnseen(api) {
		return 0, c.do(ctx, lifecycle.Stop, key, api, nil)
	}
	said := answer{complete: c.authority != nil && c.complete(ctx)} // before: what is answered now is then complete, too
	backend, doubtful, err := c.lookup(ctx, key)
	said.doubtful, said.unknown = doubtful, err != nil
	if said.unknown {
		if api == nil || api.DeletionTimestamp == nil {
			return 0, c.failure(api, eventFailedSync, fmt.Errorf("ask the provider for pod %s: %w", key, err))
		}
		backend = api.DeepCopy() // unknown: ask for the stop all the same
		backend.Status = corev1.PodStatus{}
	}
	gone := types.UID("")
	c.states.ensure(key, func(s *podState) {
		s.suspect = false
		if backend == nil {
			gone = s.previous
			s.previous, s.left = "", nil
		}
		st = *s
	})
	c.secrets.Drop(gone)
	if api != nil && backend != nil && !lifecycle.SamePod(api, backend) && lifecycle.Terminal(&backend.Status) {
		// By its name the backend tells of one that has ended, and may have the wanted one beside it.
		c.states.of(key, api.UID, func(s *podState) { s.shared = true })
		own, err := c.beside(ctx, key, api)
		if err != nil {
			return 0, c.failure(api, eventFailedSync, err)
		}
		if own != nil {
			backend = own
		}
		said.doubtful = own == nil // by its name it tells of another one, and a list alone is no evidence
	}
	if (api == nil || st.isOver(api)) && backend != nil && st.hasLeft(backend) {
		if backend, err = c.runs(ctx, key, backend); err != nil {
			return 0, c.failure(nil, eventFailedSync, err)
		}
	}
	backend = st.named(backend, api != nil)
	if api != nil && backend != nil {
		c.learnEnd(ctx, key, api, backend)
	}
	if backend != nil && (api == nil || !lifecycle.SamePod(api, backend)) && st.hasLeft(backend) {
		c.keep(key, backend.UID)
		if api == nil {
			c.noOrphan(key, st, false)
			c.forgetObjects(key, st.sent.UID)
			return 0, nil // the state goes when the backend's pod does
		}
		backend = nil
	}
	if behind := api != nil && backend != nil && !lifecycle.SamePod(api, backend); behind && !st.stopped && (api.DeletionTimestamp != nil || st.failure != nil) {
		if backend, err = c.beside(ctx, key, api); err != nil {
			return 0, c.failure(api, eventFailedSync, err)
		}
		if backend != nil {
			c.learnEnd(ctx, key, api, backend)
		}
		defer c.syncLane.AddAfter(key, lookAgain) // the older pod has its turn then
		st.orphan = orphan{}
	}
	facts := lifecycle.Facts{
		API: api, Sent: st.sent, Told: st.told(api), Backend: backend, Now: time.Now(),
		Finished: api != nil && st.finished(api.UID),
		Relapsed: st.relapsed,
		Failure:  st.failure,
		Reports:  c.notifies,
		Retell:   c.starts,
	}
	c.evidence(ctx, key, &facts, &st, said)
	decision := lifecycle.Next(facts)
	if decision.Step != lifecycle.Orphan {
		c.noOrphan(key, st, api != nil && backend != nil)
	}
	if decision.Again > 0 {
		c.syncLane.AddAfter(key, decision.Again)
	}
	return 0, c.do(ctx, decision.Step, key, api, backend)
}

// beside returns what the backend has of a pod while it shows another one under the name:
// the pod's own stop, for example, must not wait for that of the other. Nil
// means that the backend has nothing of it, by a list that was asked for after the pod was
// known here, and so after any CreatePod for it.
func (c *PodController) beside(ctx context.Context, key string, api *corev1.Pod) (*corev1.Pod, error) {
	pods, err := c.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the provider whether it has pod %s (UID %s) beside an older one: %w", key, api.UID, err)
	}
	for _, pod := range pods {
		if pod.UID == api.UID {
			return pod, nil
		}
	}
	return nil, nil
}

// runs returns the pod that runs under the name beside one that has left, or that one if there is none: by
// its name the backend may tell of either.
func (c *PodController) runs(ctx context.Context, key string, left *corev1.Pod) (*corev1.Pod, error) {
	pods, err := c.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the provider whether a pod runs as %s beside one that has ended: %w", key, err)
	}
	for _, pod := range pods {
		if keyOf(pod) == key && pod.UID != "" && !lifecycle.Terminal(&pod.Status) {
			return pod, nil
		}
	}
	return left, nil
}

func (c *PodController) do(ctx context.Context, step lifecycle.Step, key string, api, backend *corev1.Pod) error {
	defer observeWork(step, time.Now())
	switch step {
	case lifecycle.Create:
		return c.create(ctx, key, api)
	case lifecycle.Update:
		return c.update(ctx, key, api, backend)
	case lifecycle.Adopt:
		c.adopt(key, api, backend)
	case lifecycle.Stop:
		return c.stop(ctx, key, api, backend)
	case lifecycle.Stopped:
		c.secrets.End(api.UID)
		c.states.of(key, api.UID, func(st *podState) {
			st.stopped = true
			st.over = lifecycle.Terminal(&api.Status)
		})
		if backend != nil {
			c.keep(key, api.UID)
		}
		c.statusLane.Add(key)
	case lifecycle.Gone:
		c.states.of(key, api.UID, func(st *podState) { st.sent.GoneSince = time.Now() })
	case lifecycle.Orphan:
		return c.deleteOrphan(ctx, key, api, backend)
	case lifecycle.Missing:
		c.states.of(key, api.UID, func(st *podState) { st.sent.MissingSince = time.Now() })
		c.relistNow() // a list that has it speaks against the loss
	case lifecycle.Relist:
		c.relistNow()
	case lifecycle.Lost:
		return c.replaceLost(ctx, key, api)
	default:
		if api != nil && lifecycle.Terminal(&api.Status) {
			c.secrets.End(api.UID)
			c.states.of(key, api.UID, func(st *podState) { st.over = true })
		}
		c.rest(key, api)
	}
	return nil
}

// startTracking begins the state of the pod, if it is not that of the pod already. What must not be said
// about an older one is known until the backend does not have it any more.
func (c *PodController) startTracking(key string, api *corev1.Pod) {
	older := c.states.begin(key, api)
	if older == "" {
		return
	}
	c.secrets.End(older)
	if c.states.get(key).previous != older {
		c.secrets.Drop(older)
	}
	c.releaseObjects(key, older)
}

// keep remembers that the backend keeps a pod that has left.
func (c *PodController) keep(key string, uid types.UID) {
	c.states.update(key, func(st *podState) { st.left = &uid })
}

// noOrphan ends what was counted against a pod that only the backend had: it is
// wanted after all, or gone.
func (c *PodController) noOrphan(key string, st podState, wanted bool) {
	if !st.orphan.present {
		return
	}
	c.states.update(key, func(s *podState) { s.orphan = orphan{} })
	if wanted {
		c.orphans.show(key, time.Now())
	} else {
		c.orphans.forget(key)
	}
}

// forgetObjects lets go of the ConfigMaps and Secrets that the pod names, of what it was given, and of its place.
func (c *PodController) forgetObjects(key string, uid types.UID) {
	c.secrets.Drop(uid)
	c.releaseObjects(key, uid)
}

func (c *PodController) releaseObjects(key string, uid types.UID) {
	c.admission.Release(uid)
	c.earlier.drop(uid)
	if c.store != nil && uid != "" {
		namespace, name, _ := cache.SplitMetaNamespaceKey(key)
		c.store.Forget(namespace, name, uid)
	}
}

// rest is the end of the work on a pod for now: the sync error is over, and a pod that
// is gone on both sides is forgotten.
func (c *PodController) rest(key string, api *corev1.Pod) {
	if api == nil {
		st := c.states.drop(key)
		c.orphans.forget(key)
		c.lost.forget(key)
		c.secrets.Drop(st.previous)
		c.forgetObjects(key, st.sent.UID)
		return
	}
	c.clearSyncError(key)
}

// clearSyncError takes back the sync error that a pod's status shows.
func (c *PodController) clearSyncError(key string) {
	if st := c.states.get(key); st.syncErr == nil && len(st.said) == 0 {
		return
	}
	c.states.update(key, (*podState).clearError)
	c.statusLane.Add(key)
}

// lookup returns the pod that the backend has under the key, nil when it has
// none. An error means that it cannot be told. Many providers return an error
// without a kind for a pod that they do not have, so then the list decides; an
// empty one, which may be no answer either, leaves it doubtful.
func (c *PodController) lookup(ctx context.Context, key string) (pod *corev1.Pod, doubtful bool, err error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, false, err
	}
	err = c.reads.Do(c.withRedaction(ctx, key), "GetPod", func(ctx context.Context) (err error) {
		pod, err = c.provider.GetPod(ctx, namespace, name)
		return err
	})
	var panicked *providercall.Panic
	switch {
	case err == nil && pod != nil && c.foreign(pod):
		return nil, false, nil
	case err == nil:
		return pod, false, nil
	case errdefs.IsNotFound(err):
		return nil, false, nil
	case errors.As(err, &panicked), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return nil, false, err // no answer at all
	}
	pods, listErr := c.list(ctx)
	if listErr != nil {
		c.lost.silence(time.Now())
		return nil, false, errors.Join(err, listErr)
	}
	for _, p := range pods {
		if p.Namespace == namespace && p.Name == name {
			return p, false, nil
		}
	}
	return nil, len(pods) == 0, nil
}

// answer is what the backend has said of a pod by its name.
type answer struct {
	unknown  bool // it did not answer
	doubtful bool // an error without a kind beside an empty list
	complete bool // a PodAuthority said before that its answers are complete
}

// evidence completes the facts with what is known of a pod that the backend does not have, or has again.
func (c *PodController) evidence(ctx context.Context, key string, f *lifecycle.Facts, st *podState, said answer) {
	if f.API == nil || said.unknown {
		return
	}
	if f.Backend != nil {
		c.lost.show(key, f.Now)
		if (!f.Sent.Shown || !f.Sent.GoneSince.IsZero()) && lifecycle.SamePod(f.API, f.Backend) {
			c.states.of(key, f.API.UID, func(s *podState) { s.sent.Shown, s.sent.GoneSince = true, time.Time{} })
		}
		return
	}
	f.Earlier, f.Began = c.earlier.has(f.API.UID)
	f.Doubtful, f.Complete = said.doubtful, said.complete
	f.Listed, f.LackedAt = st.reappeared(), st.lackedAt
	if said.complete {
		f.LackedAt = f.Now
	}
	f.Visible = c.visibleWithin(f.API, st)
	switch {
	case c.authority != nil:
		if !said.complete {
			f.Held = lookAgain
		}
		return
	case f.Finished || st.relistedAgain() || !c.missed(f.API, st):
		c.lost.forget(key)
	default:
		c.lost.note(key, f.Now, true, c.young(f.API, st, f.Now))
	}
	f.Held = c.lost.hold(ctx, key, said.doubtful, f.Now)
}

// visibleWithin is how long after it was given the pod the backend may take to show it.
func (c *PodController) visibleWithin(api *corev1.Pod, st *podState) time.Duration {
	if st.report.matches(api.UID) && st.report.uid != "" && !st.sent.Shown && st.report.status.Phase == corev1.PodPending {
		return max(c.visibility, c.lost.period)
	}
	return c.visibility
}

// missed reports whether a pod that the backend does not have counts among the missing: it should have it, or does
// not know it when it is to stop. One that is to stop since before a restart may have stopped in it.
func (c *PodController) missed(api *corev1.Pod, st *podState) bool {
	givenUp := st.failure != nil && st.failure.Reason == eventPodLost // on evidence
	stops := st.sent.StopMissing && !givenUp && st.sent.Accepted && !lifecycle.Terminal(&api.Status)
	return stops || expected(api, st.sent, st.failure)
}

// young reports whether the backend may not have had the time to show the pod yet.
func (c *PodController) young(api *corev1.Pod, st *podState, now time.Time) bool {
	return st.sent.Accepted && !st.sent.Shown && now.Before(st.sent.AcceptedAt.Add(c.visibleWithin(api, st)))
}

// complete asks a PodAuthority. A panic is no answer.
func (c *PodController) complete(ctx context.Context) (all bool) {
	err := (&providercall.Guard{}).Do(ctx, "AnswersForAllPods", func(context.Context) error {
		all = c.authority.AnswersForAllPods()
		return nil
	})
	return err == nil && all
}

// expected reports whether the backend should have the pod: it has accepted it, since its start or before, and nobody
// wants it to stop.
func expected(api *corev1.Pod, sent lifecycle.Sent, failed *lifecycle.PodFailure) bool {
	return api.DeletionTimestamp == nil && failed == nil && sent.StopAskedAt.IsZero() && !lifecycle.Terminal(&api.Status) &&
		(sent.Accepted || !sent.Recreate && lifecycle.HasRun(api))
}

// list returns all pods of this node that the backend has.
func (c *PodController) list(ctx context.Context) (pods []*corev1.Pod, err error) {
	err = c.reads.Do(redact.With(ctx, c.secrets.All), "GetPods", func(ctx context.Context) (err error) {
		pods, err = c.provider.GetPods(ctx)
		return err
	})
	pods = slices.Clone(pods) // the provider's own list, perhaps
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p == nil || c.foreign(p) }), err
}

// foreign reports whether the pod is another node's: some backends list more
// than they were asked for, and what is not ours must not be touched.
func (c *PodController) foreign(pod *corev1.Pod) bool {
	return c.nodeName != "" && pod.Spec.NodeName != "" && pod.Spec.NodeName != c.nodeName
}
