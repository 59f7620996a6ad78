// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

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
)

// relister compares, for as long as the node runs, what the backend has with what
// the API server has, and marks the pods for which they differ. For a provider
// that does not report by itself it also collects the statuses.
type relister struct {
	c        *PodController
	timer    *time.Timer
	soon     bool // the next relist was brought forward
	failures int
}

// relist runs a relister until ctx ends.
func (c *PodController) relist(ctx context.Context) {
	r := &relister{c: c, timer: time.NewTimer(0)}
	defer r.timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.polled:
			if !r.soon && r.failures == 0 {
				r.soon = true
				r.timer.Reset(hurriedPoll)
			}
			continue
		case <-c.surveyed:
		case <-r.timer.C:
		}
		r.soon = false
		c.gauges.retrying.Set(float64(c.syncLane.Retrying()))
		if _, waits := c.fence.standsBy(); waits {
			continue // until the node is ours
		}
		c.countStuck(ctx)
		r.once(ctx)
	}
}

// once compares both sides and sets the time of the next relist.
func (r *relister) once(ctx context.Context) {
	c, asked, tenure := r.c, time.Now(), r.c.fence.current()
	pods, err := c.list(ctx)
	switch {
	case ctx.Err() != nil:
	case tenure != c.fence.current():
		r.timer.Reset(0) // what was said before a gap may be long past
	case err != nil:
		r.failed(ctx, err)
	default:
		if r.failures > 0 { // it answers again: pods that failed meanwhile need not wait
			c.syncLane.Kick()
			c.pollLane.Kick()
		}
		r.failures = 0
		c.compare(ctx, pods, asked)
		r.timer.Reset(c.pause(ctx))
	}
}

// failed asks for the pods one by one, if nobody else tells how they are.
func (r *relister) failed(ctx context.Context, err error) {
	r.failures++
	r.c.lost.silence(time.Now())
	log.G(ctx).WithError(err).Warn("the provider does not list its pods; nothing is concluded from that")
	if !r.c.notifies {
		for key := range r.c.states.accepted() {
			r.c.pollLane.Add(key)
		}
	}
	r.timer.Reset(min(backoff(r.failures+2), surveyFailing))
}
