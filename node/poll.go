// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// hurriedPoll is how often a provider that does not report is asked while a pod
	// starts or stops.
	hurriedPoll = time.Second
	// hurriedFor is for how long it is, after the backend was asked to start or stop
	// the pod: longer than the default grace period, but bounded, because one
	// pod that never starts must not raise the polling of all.
	hurriedFor = 40 * time.Second
	// aloneEvery is after how many poll periods a pod that is Pending for longer is
	// asked for by itself.
	aloneEvery = 3
	// pollers is how many pods are asked for at a time; one that hangs gives up its
	// place.
	pollers = 10
)

// pollSoon asks for the statuses to be collected within a second.
func (c *PodController) pollSoon() { wake(c.polled) }

// pause is how long to wait for the next relist.
func (c *PodController) pause(ctx context.Context) time.Duration {
	if c.notifies {
		return relistPeriod
	}
	for _, key := range c.states.hurried(time.Now()) {
		if api := c.pod(ctx, key); api != nil && !lifecycle.Terminal(&api.Status) &&
			(api.DeletionTimestamp != nil || api.Status.Phase != corev1.PodRunning) {
			return hurriedPoll
		}
	}
	return c.pollPeriod
}

// hurried returns the keys of the pods that the backend was asked to start or stop a
// short while ago.
func (s *podStates) hurried(now time.Time) (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, st := range s.m {
		if st.sent.Accepted && !st.stopped && st.hurried(now) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (st *podState) hurried(now time.Time) bool { return now.Sub(st.askedAt) < hurriedFor }

// pollAlone asks for the status of a pod about which a list has no news. A list may
// know no statuses, so each relist asks anew, but for a pod that has been Pending for long by
// the list and by its last answer: one of them would double the calls.
func (c *PodController) pollAlone(key string, st *podState, listed *corev1.PodStatus) {
	if listed.Phase == corev1.PodPending && !st.hurried(time.Now()) &&
		st.report.matches(st.sent.UID) && st.report.status.Phase == corev1.PodPending {
		c.pollLane.AddAfter(key, aloneEvery*c.pollPeriod-c.pollPeriod/2) // the next list is due before
		return
	}
	c.pollLane.Add(key)
}

// pollPod asks the provider for the status of one pod and takes it as a report.
// It is the work of the poll lane.
func (c *PodController) pollPod(ctx context.Context, key string) (class int, err error) {
	api, st, term := c.pod(ctx, key), c.states.get(key), c.fence.Term()
	if api == nil || st.sent.UID != api.UID || !st.sent.Accepted {
		return 0, nil
	}
	if _, waits := c.fence.StandsBy(); waits || st.shared {
		c.unanswered(key, api, st.sent.Generation)
		return 0, nil // the backend has an older pod of that name, or may have, and a status has no UID
	}
	var status *corev1.PodStatus
	err = c.reads.Do(c.withRedaction(ctx, key), "GetPodStatus", func(ctx context.Context) (err error) {
		status, err = c.provider.GetPodStatus(ctx, api.Namespace, api.Name)
		return err
	})
	if term != c.fence.Term() {
		c.pollLane.Add(key) // what was said before a gap may be long past
		return 0, nil
	}
	return 0, c.answered(ctx, key, api, &st, status, err)
}

// answered takes in what the provider has answered of a pod, which was in that state when it was asked.
func (c *PodController) answered(ctx context.Context, key string, api *corev1.Pod, st *podState, status *corev1.PodStatus, err error) error {
	reports, asked := c.notifies && st.report.matches(api.UID), st.sent.Generation
	if err == nil && status != nil && status.Phase != "" {
		if reports {
			c.agree(key, api, status, asked)
			return nil
		}
		c.take(ctx, api, &report{uid: api.UID, generation: asked, status: status.DeepCopy(), polled: true, after: st.report})
		if now := c.states.get(key); now.sent.UID == api.UID && now.reflected < asked {
			c.pollLane.Add(key) // it was overtaken
		}
		return nil
	}
	c.unanswered(key, api, asked)
	switch {
	case errdefs.IsNotFound(err), err == nil && status == nil:
		c.suspect(key)
	case err != nil && reports:
		log.G(ctx).WithField("pod", key).WithError(err).Info("the provider does not answer how the pod is after a change; its reports tell")
	case err != nil:
		return fmt.Errorf("ask the provider for the status of pod %s: %w", key, err)
	}
	return nil
}

// pollAgain is the retry policy of the poll lane for a provider that is asked
// anew by every relist.
func pollAgain(_ context.Context, _ string, _ int, _ time.Time, err error) (*time.Duration, error) {
	return nil, err
}

// pollFailed is where failures of the poll lane end.
func (c *PodController) pollFailed(ctx context.Context, key string, err error, delay time.Duration, again bool) {
	logger := log.G(ctx).WithField("pod", key).WithError(err)
	if again {
		logger.Warnf("the status of the pod stays as it was; next try in %v", delay)
	} else {
		logger.Warn("the status of the pod stays as it was until the next relist")
	}
}
