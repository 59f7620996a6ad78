// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// duplicateAge is how far apart two lists must be that have a duplicate before it is stopped.
	duplicateAge = 10 * time.Second
	// duplicateRest is the longest pause between two requests to stop a duplicate that does not stop.
	duplicateRest = 10 * time.Minute
)

// duplicate is a pod that runs at the backend beside the wanted one, under the same name:
// of another UID, or a second instance of the same. GetPod tells of one of them
// only, so it takes a list to find it. One that has ended needs no stop, and a backend that deletes
// by name would stop the wanted one.
type duplicate struct {
	pod   *corev1.Pod
	since time.Time // of the first list that had it
	seen  time.Time // of the newest
	asked time.Time // of the last DeletePod that was acknowledged
	tries int       // DeletePods
}

// findDuplicates remembers which pods of a list, whose keys come with it, share a name and which of them are
// duplicates, and forgets those that are gone.
func (c *PodController) findDuplicates(ctx context.Context, backend []*corev1.Pod, keys []string, asked time.Time) {
	several := make(map[string][]*corev1.Pod)
	for _, key := range c.states.shared() {
		several[key] = nil // it may be gone
	}
	first := make(map[string]bool, len(keys))
	for _, key := range keys {
		if first[key] {
			several[key] = nil
		}
		first[key] = true
	}
	if len(several) == 0 {
		return
	}
	for i, key := range keys {
		if pods, doubled := several[key]; doubled {
			several[key] = append(pods, backend[i])
		}
	}
	now := time.Now()
	for key, pods := range several {
		api := c.pod(ctx, key)
		if api == nil {
			continue
		}
		found := c.duplicateOf(key, api, pods)
		others := slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return !lifecycle.SamePod(api, p) })
		c.states.update(key, func(st *podState) {
			st.duplicate = st.duplicate.at(found, now)
			before := !st.sent.Accepted || !st.sent.AcceptedAt.Before(asked) // it says nothing about a pod that came since
			st.shared = others || len(pods) > 1 || st.shared && before
		})
		if found != nil {
			c.syncLane.Add(key)
		}
	}
}

// at returns what is known of the duplicate when a list has found, or nil.
func (d *duplicate) at(found *corev1.Pod, now time.Time) *duplicate {
	switch {
	case found == nil:
		return nil
	case d == nil || differ(d.pod, found):
		return &duplicate{pod: found, since: now, seen: now}
	}
	next := *d
	next.pod, next.seen = found, now
	return &next
}

// due returns from when on a list that has the duplicate is reason to stop it.
func (d *duplicate) due() time.Time {
	if d.tries == 0 {
		return d.since.Add(duplicateAge)
	}
	rest := min(duplicateAge<<min(d.tries-1, 10), duplicateRest)
	return d.asked.Add(orphanGrace(d.pod) + rest)
}

// duplicateOf returns the pod that runs beside the wanted one, of those that a list has under its name; nil if
// there is none, or if it cannot be told which is which.
func (c *PodController) duplicateOf(key string, api *corev1.Pod, pods []*corev1.Pod) *corev1.Pod {
	known := api.Status.ContainerStatuses
	if st := c.states.get(key); st.report.matches(api.UID) {
		known = st.report.status.ContainerStatuses
	}
	var own *corev1.Pod
	var others []*corev1.Pod
	for _, pod := range pods {
		switch {
		case pod.UID != api.UID:
			others = append(others, pod)
		case own == nil:
			own = pod
		case slices.Equal(containerIDs(pod.Status.ContainerStatuses), containerIDs(known)):
			others, own = append(others, own), pod
		default:
			others = append(others, pod)
		}
	}
	if own == nil {
		return nil // the wanted pod is not there: what is under its name is an orphan
	}
	for _, pod := range others {
		if pod.UID != "" && !lifecycle.Terminal(&pod.Status) && differ(own, pod) {
			return pod
		}
	}
	return nil
}

// differ reports whether two pods at the backend can be told apart.
func differ(a, b *corev1.Pod) bool {
	is, was := containerIDs(a.Status.ContainerStatuses), containerIDs(b.Status.ContainerStatuses)
	return a.UID != b.UID || len(is) > 0 && len(was) > 0 && !slices.Equal(is, was)
}

func containerIDs(statuses []corev1.ContainerStatus) (ids []string) {
	for _, s := range statuses {
		if s.ContainerID != "" {
			ids = append(ids, s.ContainerID)
		}
	}
	slices.Sort(ids)
	return ids
}

// removeDuplicate stops a duplicate, on evidence: it is in two lists that are far enough apart, and the wanted pod
// is beside it in both and in the API server.
func (c *PodController) removeDuplicate(ctx context.Context, key string, api *corev1.Pod, d *duplicate) error {
	now := time.Now()
	switch due := d.due(); {
	case now.Before(due):
		c.syncLane.AddAfter(key, due.Sub(now))
		return nil
	case d.seen.Before(due), now.Sub(d.seen) >= duplicateAge:
		c.relistNow() // one list for all of them, and a fresh one: the duplicate may have gone since
		return nil
	}
	live, err := c.live(ctx, key)
	switch {
	case err != nil:
		return c.failure(api, eventFailedSync, fmt.Errorf("read pod %s before a duplicate of it is removed: %w", key, err))
	case live == nil || live.UID != api.UID:
		return nil // the cache is behind
	}
	if err := c.fence.Allow(ctx); err != nil {
		return err
	}
	pod := d.pod.DeepCopy()
	grace := int64(orphanGrace(pod) / time.Second)
	pod.DeletionGracePeriodSeconds, pod.DeletionTimestamp = &grace, &metav1.Time{Time: now}
	err = c.call(ctx, key, api, "DeletePod", func(ctx context.Context) error { return c.provider.DeletePod(ctx, pod) })
	if err != nil && !errdefs.IsNotFound(err) {
		return c.failure(api, eventDeleteFailed, fmt.Errorf("delete the duplicate of pod %s (UID %s) at the backend: %w", key, pod.UID, err))
	}
	message := fmt.Sprintf("the backend had a second pod of this name (UID %s); it was told to stop it", pod.UID)
	log.G(ctx).WithField("pod", key).Warn(message)
	if d.tries == 0 {
		c.recorder.Event(api, corev1.EventTypeWarning, eventSecondPod, message)
	}
	c.states.update(key, func(st *podState) {
		if now := st.duplicate; now != nil && !differ(now.pod, d.pod) {
			asked := *now
			asked.asked, asked.tries = time.Now(), d.tries+1
			st.duplicate = &asked
		}
	})
	return nil
}

// shared returns the keys of pods beside which the backend has another.
func (s *podStates) shared() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, st := range s.m {
		if st.shared {
			keys = append(keys, key)
		}
	}
	return keys
}
