// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// surveyPeriod is how often the pods of the backend are compared with those
	// of the API server, for a provider that reports by itself. With the time that
	// evidence takes, what is found is put right within 30 seconds.
	surveyPeriod = 15 * time.Second
	// surveyFailing is the longest pause while the provider does not list its pods:
	// that it does again tells that the backend is back.
	surveyFailing = 8 * time.Second
	// hurriedPoll is how often a provider that does not is asked while a pod
	// starts or stops.
	hurriedPoll = time.Second
	// pollers is how many pods are asked for at a time; one that hangs gives up its
	// place.
	pollers = 10
)

// survey compares, for as long as the node runs, what the backend has with what
// the API server has, and marks the pods for which they differ. For a provider
// that does not report by itself it also collects the statuses.
func (c *PodController) survey(ctx context.Context) {
	failures := 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	soon := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.polled:
			if !soon && failures == 0 {
				soon = true
				timer.Reset(hurriedPoll)
			}
			continue
		case <-c.surveyed:
		case <-timer.C:
		}
		soon = false
		c.gauges.retrying.Set(float64(c.syncLane.Retrying()))
		if _, waits := c.fence.standsBy(); waits {
			continue // until the node is ours
		}
		c.countStuck(ctx)
		asked, tenure := time.Now(), c.fence.current()
		pods, err := c.list(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case tenure != c.fence.current():
			timer.Reset(0) // what was said before a gap may be long past
			continue
		case err != nil:
			failures++
			c.lost.silence(time.Now())
			log.G(ctx).WithError(err).Warn("the provider does not list its pods; nothing is concluded from that")
			if !c.notifies {
				for key := range c.states.accepted() {
					c.pollLane.Add(key)
				}
			}
			timer.Reset(min(backoff(failures+2), surveyFailing))
			continue
		}
		if failures > 0 { // it answers again: pods that failed meanwhile need not wait
			c.syncLane.Kick()
			c.pollLane.Kick()
		}
		failures = 0
		c.compare(ctx, pods, asked)
		timer.Reset(c.pause(ctx))
	}
}

// pollSoon asks for the statuses to be collected within a second.
func (c *PodController) pollSoon() {
	select {
	case c.polled <- struct{}{}:
	default:
	}
}

// pause is how long to wait for the next survey.
func (c *PodController) pause(ctx context.Context) time.Duration {
	if c.notifies {
		return surveyPeriod
	}
	for key := range c.states.accepted() {
		if api := c.pod(ctx, key); api != nil && !lifecycle.Terminal(&api.Status) &&
			(api.DeletionTimestamp != nil || api.Status.Phase != corev1.PodRunning) {
			return hurriedPoll
		}
	}
	return c.pollPeriod
}

// compare marks the pods whose presence differs. Presence in a list is
// believed; absence only makes the sync lane ask for that pod. A list says
// nothing about pods that were accepted after it was asked for.
func (c *PodController) compare(ctx context.Context, backend []*corev1.Pod, asked time.Time) {
	keys := make([]string, len(backend))
	for i, pod := range backend {
		keys[i] = keyOf(pod)
	}
	c.findDuplicates(ctx, backend, keys)
	accepted, leftovers := c.states.accepted(), c.states.leftovers()
	has := make(map[string]bool, len(backend))
	running := 0
	for i, pod := range backend {
		if pod.Status.Phase == corev1.PodRunning {
			running++
		}
		key := keys[i]
		api, st := c.pod(ctx, key), c.states.get(key)
		_, known := accepted[key]
		delete(leftovers, key)
		if api != nil && lifecycle.SamePod(api, pod) {
			has[key] = true
		}
		switch {
		case api == nil && st.hasLeft(st.named(pod, false)):
		case api == nil || !lifecycle.SamePod(api, pod) || !known && !st.isOver(api):
			c.syncLane.Add(key)
		case st.isOver(api) && pod.Status.Phase == corev1.PodRunning:
			c.suspect(key)
		case st.sent.AcceptedAt.After(asked), st.duplicate != nil && !differ(st.duplicate.pod, pod):
		case c.notifies && st.report.about(api.UID):
		case st.isNews(&pod.Status):
			c.report(ctx, pod) // of a provider that reports, what it told a former life only
		case c.notifies:
		case !st.isOver(api):
			c.pollLane.Add(key)
		}
	}
	c.gauges.running.Set(float64(running))
	c.orphans.should(ctx, len(backend), time.Now())
	for key := range leftovers {
		c.syncLane.Add(key) // the backend has forgotten it, and so can we
	}
	c.findMissing(ctx, has, asked)
}

// findMissing counts the pods that a list should have, by whether it has them, and makes the sync lane ask for the others.
func (c *PodController) findMissing(ctx context.Context, has map[string]bool, asked time.Time) {
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		log.G(ctx).WithError(err).Warn("cannot list the cached pods")
		return
	}
	var there, missing []string
	for _, api := range pods {
		key := keyOf(api)
		st := c.states.get(key)
		if st.sent.UID != api.UID || st.stopped || st.sent.AcceptedAt.After(asked) || lifecycle.Terminal(&api.Status) || !c.wanted(ctx, api) {
			continue
		}
		if !has[key] && st.sent.Accepted {
			c.suspect(key)
		}
		if st.finished(api.UID) || !expected(api, st.sent, st.verdict) {
			continue
		}
		if !has[key] {
			missing = append(missing, key)
			if !st.listed.IsZero() {
				c.states.of(key, api.UID, func(s *podState) { s.listed = time.Time{} })
			}
			continue
		}
		there = append(there, key)
		if !st.sent.Shown || !st.sent.MissingSince.IsZero() {
			c.states.of(key, api.UID, func(s *podState) { s.sent.Shown, s.listed = true, asked })
		}
	}
	if c.authority == nil {
		c.lost.relisted(ctx, there, missing, time.Now())
	}
}

// relistNow lets both sides be compared at once.
func (c *PodController) relistNow() { wake(c.surveyed) }

// suspect makes the sync lane ask the backend for a pod, even if there seems to
// be nothing to do.
func (c *PodController) suspect(key string) {
	c.states.update(key, func(st *podState) { st.suspect = true })
	c.syncLane.Add(key)
}

// isNews reports whether a status in a list is one that the backend made, and not an
// echo of the pod that it was given: with the create without any status, with
// an update with its own of then.
func (st *podState) isNews(s *corev1.PodStatus) bool {
	if s.Phase == "" || len(s.ContainerStatuses) == 0 && !lifecycle.Terminal(s) {
		return false
	}
	return st.echo == nil || !equality.Semantic.DeepEqual(st.echo, s)
}

// pollPod asks the provider for the status of one pod and takes it as a report.
// It is the work of the poll lane.
func (c *PodController) pollPod(ctx context.Context, key string) (class int, err error) {
	api, st, tenure := c.pod(ctx, key), c.states.get(key), c.fence.current()
	if _, waits := c.fence.standsBy(); waits || api == nil || st.sent.UID != api.UID || !st.sent.Accepted || st.shared {
		return 0, nil // the backend has an older pod of that name, or may have, and a status has no UID
	}
	var status *corev1.PodStatus
	err = c.reads.Do(c.about(ctx, key), "GetPodStatus", func(ctx context.Context) (err error) {
		status, err = c.provider.GetPodStatus(ctx, api.Namespace, api.Name)
		return err
	})
	switch {
	case tenure != c.fence.current():
		c.pollLane.Add(key) // what was said before a gap may be long past
	case errdefs.IsNotFound(err), err == nil && status == nil:
		c.suspect(key)
	case err != nil:
		return 0, fmt.Errorf("ask the provider for the status of pod %s: %w", key, err)
	case status.Phase != "":
		c.take(ctx, api, &report{uid: api.UID, status: status.DeepCopy(), polled: true, after: st.report})
	}
	return 0, nil
}

// pollAgain is the retry policy of the poll lane for a provider that is asked
// anew by every survey.
func pollAgain(_ context.Context, _ string, _ int, _ time.Time, err error) (*time.Duration, error) {
	return nil, err
}

// pollFailed is where failures of the poll lane end.
func (c *PodController) pollFailed(ctx context.Context, key string, err error, delay time.Duration, again bool) {
	logger := log.G(ctx).WithField("pod", key).WithError(err)
	if again {
		logger.Warnf("the status of the pod stays as it was; next try in %v", delay)
	} else {
		logger.Warn("the status of the pod stays as it was until the next survey")
	}
}
