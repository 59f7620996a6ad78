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
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// stray is a pod that the backend has beside the wanted one, under the same name:
// of another UID, or a second instance of the same. GetPod tells of one of them
// only, so it takes a list to find it.
type stray struct {
	pod   *corev1.Pod
	since time.Time // of the first list that had it
	asked time.Time // of the last DeletePod that was acknowledged
}

// findStrays remembers which pods of a list, whose keys come with it, are strays, and
// forgets those that are gone.
func (c *PodController) findStrays(ctx context.Context, backend []*corev1.Pod, keys []string) {
	seen, several := make(map[string]bool, len(keys)), map[string]bool{}
	for _, key := range keys {
		if seen[key] {
			several[key] = true
		}
		seen[key] = true
	}
	for _, key := range c.states.strays() {
		several[key] = true // it may be gone
	}
	for key := range several {
		api := c.pod(ctx, key)
		if api == nil {
			continue
		}
		found := c.strayOf(key, api, backend)
		c.states.update(key, func(st *podState) {
			switch {
			case found == nil:
				st.stray = nil
			case st.stray == nil || differ(st.stray.pod, found):
				st.stray = &stray{pod: found, since: time.Now()}
			}
		})
		if found != nil {
			c.syncLane.Add(key)
		}
	}
}

// strayOf returns the pod in a list that is there beside the wanted one, nil if
// there is none, or if it cannot be told which is which.
func (c *PodController) strayOf(key string, api *corev1.Pod, backend []*corev1.Pod) *corev1.Pod {
	known := api.Status.ContainerStatuses
	if st := c.states.get(key); st.report.about(api.UID) {
		known = st.report.status.ContainerStatuses
	}
	var own *corev1.Pod
	var others []*corev1.Pod
	for _, pod := range backend {
		switch {
		case keyOf(pod) != key:
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
		if pod.UID != "" && differ(own, pod) {
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

// removeStray stops a stray, on evidence: it is in two lists that are a quarantine
// apart, and the wanted pod is beside it in both and in the API server.
func (c *PodController) removeStray(ctx context.Context, key string, api *corev1.Pod, s *stray) error {
	wait := time.Until(s.since.Add(quarantineUnknown))
	if !s.asked.IsZero() {
		wait = time.Until(s.asked.Add(orphanGrace(s.pod) + quarantineUnknown))
	}
	if wait > 0 {
		c.syncLane.AddAfter(key, wait)
		return nil
	}
	pods, err := c.list(ctx)
	if err != nil {
		return c.failure(api, eventFailedSync, fmt.Errorf("list pods before one beside %s is removed: %w", key, err))
	}
	found := c.strayOf(key, api, pods)
	if found == nil || differ(found, s.pod) {
		return nil // the next survey will tell
	}
	live, err := c.live(ctx, key)
	switch {
	case err != nil:
		return c.failure(api, eventFailedSync, fmt.Errorf("read pod %s before one beside it is removed: %w", key, err))
	case live == nil || live.UID != api.UID:
		return nil // the cache is behind
	}
	if err := c.fence.allow(ctx); err != nil {
		return err
	}
	pod, now := found.DeepCopy(), time.Now()
	grace := int64(orphanGrace(pod) / time.Second)
	pod.DeletionGracePeriodSeconds, pod.DeletionTimestamp = &grace, &metav1.Time{Time: now}
	err = c.call(ctx, key, api, "DeletePod", func(ctx context.Context) error { return c.provider.DeletePod(ctx, pod) })
	if err != nil && !errdefs.IsNotFound(err) {
		return c.failure(api, eventDeleteFailed, fmt.Errorf("delete the second pod %s (UID %s) at the backend: %w", key, pod.UID, err))
	}
	message := fmt.Sprintf("the backend had a second pod of this name (UID %s); it was told to stop it", pod.UID)
	log.G(ctx).WithField("pod", key).Warn(message)
	c.recorder.Event(api, corev1.EventTypeWarning, eventSecondPod, message)
	c.states.update(key, func(st *podState) {
		if st.stray == s {
			st.stray = &stray{pod: s.pod, since: s.since, asked: now}
		}
	})
	return nil
}

// strays returns the keys of pods beside which the backend has another.
func (s *podStates) strays() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, st := range s.m {
		if st.stray != nil {
			keys = append(keys, key)
		}
	}
	return keys
}
