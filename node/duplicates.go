// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// findDuplicates remembers which pods of a list, whose keys come with it, share a name and which of them are
// duplicates, and forgets those that are gone.
func (c *podCore) findDuplicates(ctx context.Context, backend []*corev1.Pod, keys []string, asked time.Time) {
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
		st := c.states.get(key)
		before := !st.sent.Accepted || !st.sent.AcceptedAt.Before(asked) // it says nothing about a pod that came since
		c.states.evidence(key, anyPod, func(e *evidence) {
			if found == nil || !asked.Before(st.duplicateStops.At) { // else it may have been stopped since
				e.duplicate = e.duplicate.At(found, now)
			}
			e.shared = others || len(pods) > 1 || e.shared && before
		})
		if found != nil || st.duplicate != nil { // what failed with one that has gone is over
			c.syncLane.Add(key)
		}
	}
}

// duplicateOf returns the pod that runs beside the wanted one, of those that a list has under its name.
func (c *podCore) duplicateOf(key string, api *corev1.Pod, pods []*corev1.Pod) *corev1.Pod {
	known := &api.Status
	if st := c.states.get(key); st.report.matches(api.UID) {
		known = st.report.status
	}
	return lifecycle.DuplicateAmong(api.UID, known, pods)
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
