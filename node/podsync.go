// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
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
		c.states.begin(key, api.UID)
		if c.store != nil {
			c.store.Track(api)
		}
		c.judge(key, api)
	}
	st := c.states.get(key)
	if api == nil && st.stopped && st.previous == "" || !st.suspect && lifecycle.Quiet(api, st.sent, st.verdict != nil) {
		return 0, c.rest(key, api)
	}
	backend, err := c.lookup(ctx, key)
	if err != nil {
		if api == nil || api.DeletionTimestamp == nil {
			return 0, c.failure(api, eventFailedSync, fmt.Errorf("ask the provider for pod %s: %w", key, err))
		}
		backend = api // unknown: ask for the stop all the same
	}
	c.states.update(key, func(s *podState) {
		s.suspect = false
		if backend == nil {
			s.previous, s.orphan = "", orphan{}
		}
		st = *s
	})
	if backend == nil {
		c.orphans.forget(key)
	} else if st.previous != "" && backend.UID == "" {
		backend = backend.DeepCopy()
		backend.UID = st.previous // no UID is kept there, but we know whom it was
	}
	decision := lifecycle.Next(lifecycle.Facts{
		API: api, Sent: st.sent, Backend: backend, Now: time.Now(),
		Finished: api != nil && st.report.about(api.UID) && lifecycle.Terminal(st.report.status),
		Verdict:  st.verdict != nil,
	})
	if decision.Again > 0 {
		c.syncLane.AddAfter(key, decision.Again)
	}
	return 0, c.do(ctx, decision.Step, key, api, backend)
}

func (c *PodController) do(ctx context.Context, step lifecycle.Step, key string, api, backend *corev1.Pod) error {
	switch step {
	case lifecycle.Create:
		return c.create(ctx, key, api)
	case lifecycle.Update:
		return c.update(ctx, key, api)
	case lifecycle.Adopt:
		c.adopt(ctx, key, api, backend)
	case lifecycle.Stop:
		return c.stop(ctx, key, api)
	case lifecycle.Stopped:
		c.states.update(key, func(st *podState) { st.stopped = true })
		c.statusLane.Add(key)
	case lifecycle.Orphan:
		return c.deleteOrphan(ctx, key, backend)
	case lifecycle.Missing:
		c.states.update(key, func(st *podState) { st.sent.MissingSince = time.Now() })
	case lifecycle.Lost:
		return c.replaceLost(ctx, key, api)
	default:
		return c.rest(key, api)
	}
	return nil
}

// rest is the end of the work on a pod for now: trouble is over, and a pod that
// is gone on both sides is forgotten.
func (c *PodController) rest(key string, api *corev1.Pod) error {
	if api == nil {
		st := c.states.drop(key)
		c.orphans.forget(key)
		if c.store != nil && st.sent.UID != "" {
			namespace, name, _ := cache.SplitMetaNamespaceKey(key)
			c.store.Forget(namespace, name, st.sent.UID)
		}
		return nil
	}
	c.settle(key)
	return nil
}

// settle takes back the trouble that a pod's status shows.
func (c *PodController) settle(key string) {
	if c.states.get(key).trouble == nil {
		return
	}
	c.states.update(key, func(st *podState) { st.trouble = nil })
	c.statusLane.Add(key)
}

// judge decides that a pod has failed when its active deadline has passed, and
// looks again when it will have.
func (c *PodController) judge(key string, api *corev1.Pod) {
	deadline, has := lifecycle.Deadline(api)
	if !has || lifecycle.Terminal(&api.Status) || api.DeletionTimestamp != nil || c.states.get(key).verdict != nil {
		return
	}
	if left := time.Until(deadline); left > 0 {
		c.syncLane.AddAfter(key, left)
		return
	}
	v := &lifecycle.Verdict{Reason: eventDeadline, Message: "the pod was active for longer than spec.activeDeadlineSeconds"}
	c.states.update(key, func(st *podState) { st.verdict = v })
	c.recorder.Event(api, corev1.EventTypeNormal, eventDeadline, v.Message)
}

// lookup returns the pod that the backend has under the key, nil when it has
// none. An error means that it cannot be told. Many providers return an error
// without a kind for a pod that they do not have, so then the list decides.
func (c *PodController) lookup(ctx context.Context, key string) (pod *corev1.Pod, err error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, err
	}
	err = c.reads.Do(ctx, "GetPod", func(ctx context.Context) (err error) {
		pod, err = c.provider.GetPod(ctx, namespace, name)
		return err
	})
	if err == nil || errdefs.IsNotFound(err) {
		return pod, nil
	}
	pods, listErr := c.list(ctx)
	if listErr != nil {
		return nil, errors.Join(err, listErr)
	}
	for _, p := range pods {
		if p != nil && p.Namespace == namespace && p.Name == name {
			return p, nil
		}
	}
	return nil, nil
}

// list returns all pods that the backend has.
func (c *PodController) list(ctx context.Context) (pods []*corev1.Pod, err error) {
	err = c.reads.Do(ctx, "GetPods", func(ctx context.Context) (err error) {
		pods, err = c.provider.GetPods(ctx)
		return err
	})
	return pods, err
}
