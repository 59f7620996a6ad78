// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"maps"
	"slices"
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

// comparePods marks the pods that only one side has. Presence in a list counts as proof; absence only makes the sync lane ask for that pod.
// A list proves nothing about pods that were accepted after the list was requested.
func (c *comparer) comparePods(ctx context.Context, backend []*corev1.Pod, asked time.Time) {
	keys, apis := make([]string, len(backend)), make([]*corev1.Pod, len(backend))
	has := make(map[string]bool, len(backend))
	several := map[string][]*corev1.Pod{} // names that have other pods than one wanted pod
	for _, key := range c.states.keysOf((*podState).hadSeveral) {
		several[key] = nil // the other pod may have gone
	}
	alive := 0
	for i, pod := range backend {
		key := keyOf(pod)
		api := c.pod(ctx, key)
		keys[i], apis[i] = key, api
		if !lifecycle.Terminal(&pod.Status) {
			alive++
		}
		if api == nil || has[key] || !lifecycle.SamePod(api, pod) {
			several[key] = nil
		} else {
			has[key] = true
		}
	}
	further := c.sortNames(ctx, backend, keys, several, asked)
	for i, pod := range backend {
		if apis[i] != nil && lifecycle.SamePod(apis[i], pod) && !further[pod] {
			c.compareStatus(ctx, keys[i], apis[i], pod, asked)
		}
	}
	c.orphans.setKnown(ctx, alive, time.Now())
	c.findMissing(ctx, has, asked)
}

// sortNames distinguishes the pods that share a name in several. It returns the additional instances of wanted pods.
func (c *comparer) sortNames(ctx context.Context, backend []*corev1.Pod, keys []string, several map[string][]*corev1.Pod, asked time.Time) (further map[*corev1.Pod]bool) {
	if len(several) == 0 {
		return nil
	}
	for i, key := range keys {
		if pods, named := several[key]; named {
			several[key] = append(pods, backend[i])
		}
	}
	further = map[*corev1.Pod]bool{}
	for _, key := range slices.Sorted(maps.Keys(several)) {
		api := c.pod(ctx, key)
		if api != nil {
			for _, pod := range c.noteInstances(ctx, key, api, several[key]) {
				further[pod] = true
			}
		}
		c.noteOthers(key, api, several[key], asked)
	}
	return further
}

// compareStatus compares the pod in a list with the wanted pod.
func (c *comparer) compareStatus(ctx context.Context, key string, api, pod *corev1.Pod, asked time.Time) {
	st := c.states.get(key)
	over, accepted := st.isOver(api), st.isAccepted() && st.sent.UID == api.UID
	switch {
	case over && pod.Status.Phase == corev1.PodRunning:
		c.suspectPod(key)
	case !over && !accepted:
		c.syncLane.Add(key)
	case !st.sent.AcceptedAt.Before(asked):
	case c.backend.notifies && (st.report.isOwnWord(api.UID) || st.beingAsked()):
	case st.isNews(&pod.Status):
		c.reports.takeListed(ctx, pod, c.backend.notifies) // for a provider that reports, this replaces only its reports from before the restart
	case !c.backend.notifies && !over:
		c.pollAlone(key, &st, &pod.Status)
	}
}

// findMissing counts the pods that a list should contain, and makes the sync lane ask for the absent ones.
func (c *comparer) findMissing(ctx context.Context, has map[string]bool, asked time.Time) {
	now := time.Now()
	var there, suspects []string
	var missing []lackedPod
	for _, api := range c.all(ctx) {
		key := keyOf(api)
		st := c.states.get(key)
		ofAnother := st.sent.UID != "" && st.sent.UID != api.UID
		if ofAnother || st.stopped || lifecycle.Terminal(&api.Status) {
			continue
		}
		if !st.sent.AcceptedAt.Before(asked) { // the list is older than the acceptance
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
			if !st.isFinished(api.UID) && lifecycle.Missed(api, &st.sent, st.failure) {
				missing = append(missing, lackedPod{key, lifecycle.Young(&st.sent, c.visibleWithin(api, &st), now)})
			}
			continue
		}
		if !st.sent.Shown || inQuestion {
			c.states.recordShown(key, api.UID, asked)
		}
		if !st.sent.MissingSince.IsZero() {
			suspects = append(suspects, key) // the pod is no longer missing: a later absence is counted from its own start
		}
		if !st.isFinished(api.UID) && (st.sent.StopMissing || lifecycle.Expected(api, &st.sent, st.failure)) {
			there = append(there, key)
		}
	}
	if c.backend.authority == nil {
		c.missing.takeList(ctx, there, missing, now)
	}
	for _, key := range suspects {
		c.suspectPod(key) // after the count, because an answer about a pod may remove it from the missing pods
	}
}

// isNews reports whether the status in a list comes from the backend. Otherwise it only repeats the status of the pod that the backend
// received: none in a create, and the provider's own last status in an update.
func (st *podState) isNews(s *corev1.PodStatus) bool {
	if s.Phase == "" || len(s.ContainerStatuses) == 0 && !lifecycle.Terminal(s) {
		return false
	}
	return st.echo == nil || !equality.Semantic.DeepEqual(st.echo, s)
}

// pollAlone requests the status of a pod if a list has no news about it. A list may contain no statuses, so each relist polls the pod
// again, except a pod that has long been Pending in the list and in its last answer: polling it each time would double the calls.
func (c *comparer) pollAlone(key string, st *podState, listed *corev1.PodStatus) {
	pending := st.report.matches(st.sent.UID) && st.report.status.Phase == corev1.PodPending
	if pending && listed.Phase == corev1.PodPending && !st.isHurried() {
		c.pollLane.AddAfter(key, aloneEvery*c.pollInterval-c.pollInterval/2) // the next list is due earlier
		return
	}
	c.pollLane.Add(key)
}
