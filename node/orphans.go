// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// orphanAge is how long a pod must be unwanted before it is deleted at the backend, when nobody saw the
	// deletion. A pod that this process ran has been in the API server; the age is then long enough for
	// all the tombstones of one list to arrive, so that many at once show.
	orphanAge      = 10 * time.Second
	orphanAgeKnown = 2 * time.Second
	// askAgain is how long after the time that a backend has for a stop it is asked for it again, and how long
	// what speaks against a removal lets it wait.
	askAgain = 10 * time.Second
)

// orphan is the sync lane's progress with a pod that only the backend has.
type orphan struct {
	uid     types.UID
	since   time.Time
	asked   time.Time // of the last DeletePod that was acknowledged
	present bool      // there is one
}

// deleteOrphan deletes a pod at the backend that is not the one in the API
// server, or that is not in the API server at all, on evidence: it was an
// orphan for a while, there are not many at once, and a live read says so.
// api is the pod that waits for the name, if there is one.
func (c *PodController) deleteOrphan(ctx context.Context, key string, api, backend *corev1.Pod) error {
	now := time.Now()
	st := c.states.get(key)
	o := st.orphanOf(backend.UID, now)
	c.states.update(key, func(s *podState) { s.orphan = o })
	if wait := o.stopping(now, orphanGrace(backend)); wait > 0 {
		c.syncLane.AddAfter(key, wait)
		return nil
	}
	if wait := c.orphanHeld(ctx, key, &st, o, api, backend, now); wait > 0 {
		c.syncLane.AddAfter(key, wait)
		return nil
	}
	live, err := c.live(ctx, key)
	if err != nil {
		return c.failure(api, eventFailedSync, fmt.Errorf("read pod %s before deleting it at the backend: %w", key, err))
	}
	if live != nil && (backend.UID == "" || live.UID == backend.UID) {
		// Wanted after all: the cache is behind, or the pod is not for this controller.
		c.states.update(key, func(s *podState) { s.orphan = orphan{} })
		c.orphans.show(key, now)
		c.syncLane.AddAfter(key, askAgain)
		return nil
	}
	return c.stopOrphan(ctx, key, api, backend)
}

// orphanOf returns the progress with the orphan of the UID, which is new unless
// it is the one that was worked on. A stop that the backend acknowledged while the
// pod was in the API server counts.
func (st *podState) orphanOf(uid types.UID, now time.Time) orphan {
	if st.orphan.present && st.orphan.uid == uid {
		return st.orphan
	}
	o := orphan{uid: uid, since: now, present: true}
	if uid != "" && st.sent.UID == uid && st.sent.StopAcked {
		o.asked = st.sent.StopAskedAt
	}
	return o
}

// stopping returns after which time to look whether the orphan has stopped; 0
// means that it must be asked to, or asked again.
func (o orphan) stopping(now time.Time, grace time.Duration) time.Duration {
	waited := now.Sub(o.asked)
	if o.asked.IsZero() || waited >= grace+askAgain {
		return 0
	}
	return min(max(waited/2, 250*time.Millisecond), 10*time.Second)
}

// succeeded reports whether api is a newer pod of the name than the backend's, which proves that the backend's
// was deleted.
func succeeded(api, backend *corev1.Pod) bool {
	return api != nil && !backend.CreationTimestamp.IsZero() && !api.CreationTimestamp.Before(&backend.CreationTimestamp)
}

// orphanHeld returns how long the orphan must still be left alone; 0 when its deletion is known to have happened. What
// has ended has nothing to lose, so it does not count among many.
func (c *PodController) orphanHeld(ctx context.Context, key string, st *podState, o orphan, api, backend *corev1.Pod, now time.Time) time.Duration {
	if o.uid != "" && (st.witnessed == o.uid || succeeded(api, backend)) {
		c.orphans.forget(key)
		return 0
	}
	ended := lifecycle.Terminal(&backend.Status)
	if ended {
		c.orphans.forget(key)
	} else {
		c.orphans.note(key, now, true, false)
	}
	age := orphanAge
	if o.uid != "" && (st.previous == o.uid || st.sent.Accepted && st.sent.UID == o.uid) {
		age = orphanAgeKnown
	}
	if left := o.since.Add(age).Sub(now); left > 0 {
		return left
	}
	if ended {
		return 0
	}
	return min(c.orphans.hold(ctx, key, false, now), time.Minute)
}

// stopOrphan asks the backend to stop a pod that nobody wants, and looks at
// once whether it has.
func (c *PodController) stopOrphan(ctx context.Context, key string, api, backend *corev1.Pod) error {
	if err := c.fence.Allow(ctx); err != nil {
		return err
	}
	now := time.Now()
	pod := backend.DeepCopy()
	seconds := int64(orphanGrace(backend) / time.Second)
	pod.DeletionGracePeriodSeconds = &seconds
	if pod.DeletionTimestamp == nil {
		pod.DeletionTimestamp = &metav1.Time{Time: now}
	}
	err := c.guard.Do(c.withRedaction(ctx, key), "DeletePod", func(ctx context.Context) error { return c.provider.DeletePod(ctx, pod) })
	if err != nil && !errdefs.IsNotFound(err) {
		return c.failure(api, eventDeleteFailed, fmt.Errorf("delete pod %s (UID %s), which is no longer in the API server, at the backend: %w", key, backend.UID, err))
	}
	log.G(ctx).WithField("pod", key).Infof("deleted a pod at the backend that is no longer in the API server (UID %s)", backend.UID)
	c.states.update(key, func(s *podState) {
		if s.orphan.asked = now; lifecycle.Terminal(&backend.Status) {
			s.left = &backend.UID // some keep for ever what has ended
		}
		if s.duplicate != nil && !differ(s.duplicate.pod, backend) {
			s.duplicate = nil // by its name a second DeletePod could stop the wanted pod
		}
	})
	c.orphans.forget(key)
	c.syncLane.Add(key)
	return nil
}

// orphanGrace is the grace period of a pod that only the backend has.
func orphanGrace(pod *corev1.Pod) time.Duration {
	return time.Duration(lifecycle.Grace(pod)) * time.Second
}

// live reads a pod from the API server itself, past every cache; nil means that
// it does not exist. With a known node name it reads in the way that the Node
// authorizer allows for pods that do not exist: a GET would be forbidden.
func (c *PodController) live(ctx context.Context, key string) (*corev1.Pod, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, podRequestTimeout)
	defer cancel()
	if c.nodeName == "" {
		pod, err := c.client.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return pod, err
	}
	list, err := c.client.Pods(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"metadata.name": name, "spec.nodeName": c.nodeName}.String(),
	})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].Name == name {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}
