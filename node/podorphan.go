// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// quarantineKnown is how long a pod that this process ran must be unwanted
	// before it is deleted at the backend, when nobody saw the deletion: long
	// enough for all the tombstones of one list to arrive, so that a mass of them
	// shows.
	quarantineKnown = 2 * time.Second
	// quarantineUnknown is the same for pods that this process never ran.
	quarantineUnknown = 10 * time.Second
	// quarantineMass is how long orphans are held when there are too many at once.
	quarantineMass = 5 * time.Minute
	// massMinimum and massFraction: more orphans than both are too many.
	massMinimum  = 10
	massFraction = 5 // one in five
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
// orphan for a while, there are not suddenly many, and a live read says so.
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
	if wait := c.quarantine(ctx, key, &st, o, backend, now); wait > 0 {
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
		c.orphans.forget(key)
		c.syncLane.AddAfter(key, quarantineUnknown)
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
	if o.asked.IsZero() || waited >= grace+quarantineUnknown {
		return 0
	}
	return min(max(waited/2, 250*time.Millisecond), 10*time.Second)
}

// quarantine returns how long the orphan must still be left alone; 0 when its
// deletion was seen to happen.
//
// Many at once are held for longer, with two exceptions. What has ended has
// nothing to lose. And pods that this process ran, which an API server that has not
// gone back no longer has, were deleted while we could not hear it: after a partition,
// for example, when all of them were evicted.
func (c *PodController) quarantine(ctx context.Context, key string, st *podState, o orphan, backend *corev1.Pod, now time.Time) time.Duration {
	if o.uid != "" && st.witnessed == o.uid {
		return 0
	}
	c.look(ctx)
	ended := lifecycle.Terminal(&backend.Status)
	if ended {
		c.orphans.forget(key)
	} else {
		c.orphans.note(key, now)
	}
	known := o.uid != "" && (st.previous == o.uid || st.sent.Accepted && st.sent.UID == o.uid)
	length := quarantineUnknown
	if known {
		length = quarantineKnown
	}
	if left := o.since.Add(length).Sub(now); left > 0 {
		return left
	}
	if ended || known && !c.history.doubtful(now) {
		return 0
	}
	return min(c.orphans.hold(ctx, now, c.states.size()), time.Minute)
}

// stopOrphan asks the backend to stop a pod that nobody wants, and looks at
// once whether it has.
func (c *PodController) stopOrphan(ctx context.Context, key string, api, backend *corev1.Pod) error {
	if err := c.fence.allow(ctx); err != nil {
		return err
	}
	now := time.Now()
	pod := backend.DeepCopy()
	seconds := int64(orphanGrace(backend) / time.Second)
	pod.DeletionGracePeriodSeconds = &seconds
	if pod.DeletionTimestamp == nil {
		pod.DeletionTimestamp = &metav1.Time{Time: now}
	}
	err := c.guard.Do(c.about(ctx, key), "DeletePod", func(ctx context.Context) error { return c.provider.DeletePod(ctx, pod) })
	if err != nil && !errdefs.IsNotFound(err) {
		return c.failure(api, eventDeleteFailed, fmt.Errorf("delete pod %s (UID %s), which is no longer in the API server, at the backend: %w", key, backend.UID, err))
	}
	log.G(ctx).WithField("pod", key).Infof("deleted a pod at the backend that is no longer in the API server (UID %s)", backend.UID)
	c.states.update(key, func(s *podState) { s.orphan.asked = now })
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

// orphanWatch notices when suddenly many pods seem unwanted, which is more
// often a fault of the API server's data than anybody's wish.
type orphanWatch struct {
	held *metrics.Share // how many are held back

	mu    sync.Mutex
	since map[string]time.Time // guarded by mu; orphans that nobody saw being deleted
	mass  time.Time            // guarded by mu; since when there are too many
}

func (w *orphanWatch) note(key string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.since[key]; !known {
		w.since[key] = now
	}
}

func (w *orphanWatch) forget(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.since, key)
	if len(w.since) <= massMinimum {
		w.mass = time.Time{} // it is over: the next one is another
	}
}

// hold returns for how long no orphan may be deleted, 0 when they may. of is
// how many pods there are in all.
func (w *orphanWatch) hold(ctx context.Context, now time.Time, of int) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.since) <= massMinimum || len(w.since)*massFraction <= of {
		w.mass = time.Time{}
		w.held.Set(0)
		return 0
	}
	if w.mass.IsZero() {
		w.mass = now
		log.G(ctx).Errorf("%d of %d pods at the backend are suddenly unknown to the API server; holding their deletion for %v. If they are to be kept, restore them or stop this process", len(w.since), of, quarantineMass)
	}
	if left := w.mass.Add(quarantineMass).Sub(now); left > 0 {
		w.held.Set(float64(len(w.since)))
		return left
	}
	w.held.Set(0)
	return 0
}
