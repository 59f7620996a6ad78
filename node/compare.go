// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// comparer compares the pods of the backend with the pods of the API server.
type comparer struct {
	*podCore
	*quarantines
	backend      *backend
	reports      *podReports
	pollInterval time.Duration
}

// compare marks the pods whose presence differs. Presence in a list is believed; absence only makes the sync
// lane ask for that pod. A list proves nothing about pods that were accepted after the request for the list.
func (c *comparer) compare(ctx context.Context, backend []*corev1.Pod, asked time.Time) {
	keys := make([]string, len(backend))
	for i, pod := range backend {
		keys[i] = keyOf(pod)
	}
	further := c.findBeside(ctx, backend, keys, asked)
	accepted, leftovers := c.states.accepted(), c.states.leftovers()
	has := make(map[string]bool, len(backend))
	alive := 0
	for i, pod := range backend {
		if !lifecycle.Terminal(&pod.Status) {
			alive++
		}
		key := keys[i]
		api, st := c.pod(ctx, key), c.states.get(key)
		_, known := accepted[key]
		delete(leftovers, key)
		switch {
		case api != nil && lifecycle.SamePod(api, pod):
			has[key] = true
		case api != nil && st.sent.UID == api.UID && !st.shared:
			c.states.share(key, api.UID)
		}
		switch {
		case api == nil && st.keeps(pod):
		case st.isOver(api) && !lifecycle.SamePod(api, pod) && !lifecycle.Terminal(&pod.Status):
			c.suspect(key)
		case api == nil || !lifecycle.SamePod(api, pod) || !known && !st.isOver(api):
			c.syncLane.Add(key)
		case st.isOver(api) && pod.Status.Phase == corev1.PodRunning:
			c.suspect(key)
		case !st.sent.AcceptedAt.Before(asked), further[pod]:
		case c.backend.notifies && (st.report.tells(api.UID) || st.beingAsked()):
		case st.isNews(&pod.Status):
			c.reports.listed(ctx, pod, c.backend.notifies) // for a provider that reports, only its reports from before the restart
		case c.backend.notifies:
		case !st.isOver(api):
			c.pollAlone(key, &st, &pod.Status)
		}
	}
	c.orphans.should(ctx, alive, time.Now())
	for key := range leftovers {
		c.syncLane.Add(key) // the backend has forgotten the pod, and so can the node
	}
	c.findMissing(ctx, has, asked)
}

// findMissing counts the pods that a list should have, present and absent ones, and makes the sync lane ask for
// the absent ones.
func (c *comparer) findMissing(ctx context.Context, has map[string]bool, asked time.Time) {
	now := time.Now()
	var there, suspects []string
	var missing []lackedPod
	for _, api := range c.all(ctx) {
		key := keyOf(api)
		st := c.states.get(key)
		if st.sent.UID != "" && st.sent.UID != api.UID || st.stopped || !st.sent.AcceptedAt.Before(asked) || lifecycle.Terminal(&api.Status) {
			continue
		}
		if !has[key] && st.sent.Accepted {
			suspects = append(suspects, key)
		}
		inQuestion := !st.sent.MissingSince.IsZero() || st.sent.StopMissing
		if !has[key] {
			if inQuestion {
				c.states.evidence(key, api.UID, func(s *evidence) { s.lackedAt = asked })
			}
			if !st.finished(api.UID) && lifecycle.Missed(api, &st.sent, st.failure) {
				missing = append(missing, lackedPod{key, lifecycle.Young(&st.sent, c.visibleWithin(api, &st), now)})
			}
			continue
		}
		if !st.sent.Shown || inQuestion {
			c.states.shown(key, api.UID, asked)
		}
		if !st.sent.MissingSince.IsZero() {
			suspects = append(suspects, key) // the pod is no longer missing: the next absence starts the time again
		}
		if !st.finished(api.UID) && (st.sent.StopMissing || lifecycle.Expected(api, &st.sent, st.failure)) {
			there = append(there, key)
		}
	}
	if c.backend.authority == nil {
		c.missing.relisted(ctx, there, missing, now)
	}
	for _, key := range suspects {
		c.suspect(key) // after the count: an answer about a pod may remove it from the missing pods
	}
}

// isNews reports whether the backend made the status in a list. Otherwise the status is an echo of the pod that
// the backend was given. A create hands over no status, and an update hands over the provider's own status of
// that time.
func (st *podState) isNews(s *corev1.PodStatus) bool {
	if s.Phase == "" || len(s.ContainerStatuses) == 0 && !lifecycle.Terminal(s) {
		return false
	}
	return st.echo == nil || !equality.Semantic.DeepEqual(st.echo, s)
}

// pollAlone requests the status of a pod when a list has no news about it. A list may contain no statuses, so
// each relist polls the pod again. The exception is a pod that has long been Pending in the list and in its last
// answer: polling it each time would double the calls.
func (c *comparer) pollAlone(key string, st *podState, listed *corev1.PodStatus) {
	if listed.Phase == corev1.PodPending && !st.hurried(time.Now()) &&
		st.report.matches(st.sent.UID) && st.report.status.Phase == corev1.PodPending {
		c.pollLane.AddAfter(key, aloneEvery*c.pollInterval-c.pollInterval/2) // the next list is due earlier
		return
	}
	c.pollLane.Add(key)
}
