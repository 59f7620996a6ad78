// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/keyqueue"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// relistPeriod is the interval at which the pods of the backend and of the API server are compared, for a provider that reports its
	// pods. A difference is corrected within 30 seconds, including the time for evidence.
	relistPeriod = 15 * time.Second
	// relistFailing is the longest pause while GetPods fails. The next successful list shows that the backend is available again.
	relistFailing = 8 * time.Second
	// listWait is the time that the relist waits for GetPods. A change is visible within a minute, including the time to request the pods
	// one by one instead.
	listWait = 45 * time.Second
)

// relister compares the pods of the backend with the pods of the API server, for as long as the node runs, and adds the pods that differ to
// the lanes. For a provider that does not report, it also collects the statuses.
type relister struct {
	comparer
	timer    *time.Timer
	soon     bool // the next relist was brought forward
	failures int

	calls   sync.WaitGroup // calls of GetPods; at most one is running
	overdue <-chan podList // receives the result of the overdue call; nil: no call is overdue
	asked   time.Time      // when the last call was made
	begun   time.Time      // when the last relist began
}

// podList is a result of GetPods.
type podList struct {
	pods []*corev1.Pod
	err  error
}

// run compares until ctx ends, and returns when its last GetPods has returned.
func (r *relister) run(ctx context.Context) {
	r.timer = time.NewTimer(0)
	defer r.calls.Wait()
	defer r.timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.polled:
			if !r.soon && r.failures == 0 {
				r.soon = true
				r.timer.Reset(hurriedPoll)
			}
			continue
		case <-r.relistWanted:
			if r.failures > 0 {
				continue // the timer is already set; after each failure, pods request a relist again
			}
		case <-r.overdue: // drop its answer, which is older than later evidence
			log.G(ctx).Infof("GetPods has returned, %v after it was called; the provider is asked anew", time.Since(r.asked).Round(time.Second))
			r.overdue = nil
		case <-r.timer.C:
		}
		r.soon = false
		if _, waits := r.fence.StandsBy(); waits {
			r.timer.Reset(r.pause(ctx)) // there may be no event when this process takes over the node
			continue
		}
		keyqueue.Do(ctx, func() { r.relistOnce(ctx) })
	}
}

// relistOnce compares both sides and sets the time of the next relist.
func (r *relister) relistOnce(ctx context.Context) {
	asked, term := time.Now(), r.fence.Term()
	if !r.begun.IsZero() {
		relistInterval.Observe(asked.Sub(r.begun).Seconds())
	}
	r.begun = asked
	pods, err := r.askForAll(ctx)
	relistDuration.Observe(time.Since(asked).Seconds())
	switch {
	case ctx.Err() != nil:
	case term != r.fence.Term():
		r.timer.Reset(0) // an answer from an earlier term may be outdated
	case err != nil:
		r.recordFailure(ctx, err)
	default:
		if r.failures > 0 { // the backend answers again: failed pods need not wait
			r.syncLane.Kick()
			r.pollLane.Kick()
		}
		r.failures = 0
		r.comparePods(ctx, pods, asked)
		r.timer.Reset(r.pause(ctx))
	}
}

// pause returns the time until the next relist.
func (r *relister) pause(ctx context.Context) time.Duration {
	if r.backend.notifies {
		return relistPeriod
	}
	for _, key := range r.states.keysOf((*podState).isHurried) {
		api := r.pod(ctx, key)
		if api == nil || lifecycle.Terminal(&api.Status) {
			continue
		}
		if api.DeletionTimestamp != nil || api.Status.Phase != corev1.PodRunning {
			return hurriedPoll
		}
	}
	return r.pollInterval
}

// recordFailure polls the pods one by one, if the provider does not report them by itself.
func (r *relister) recordFailure(ctx context.Context, err error) {
	r.failures++
	r.missing.restartAll(time.Now())
	log.G(ctx).WithError(err).Warn("the provider does not list its pods; nothing is concluded from that")
	if !r.backend.notifies {
		for _, key := range r.states.keysOf((*podState).isAccepted) {
			r.pollLane.Add(key)
		}
	}
	r.timer.Reset(min(backoffAfter(r.failures+2), relistFailing))
}

// askForAll requests all pods and waits for at most listWait. A hanging call must not end the relist, but there is no second call until it
// returns.
func (r *relister) askForAll(ctx context.Context) ([]*corev1.Pod, error) {
	if r.overdue != nil {
		return nil, r.unansweredError()
	}
	r.asked = time.Now()
	answer := make(chan podList, 1)
	r.calls.Go(func() {
		pods, err := r.backend.listPods(ctx)
		answer <- podList{pods, err}
	})
	patience := time.NewTimer(listWait)
	defer patience.Stop()
	select {
	case got := <-answer:
		return got.pods, got.err
	case <-patience.C:
		r.overdue = answer
		return nil, r.unansweredError()
	}
}

func (r *relister) unansweredError() error {
	return fmt.Errorf("GetPods was called at %s and has not returned", r.asked.UTC().Format(time.RFC3339))
}
