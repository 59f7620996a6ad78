// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 60 * time.Second
	// rejectedRetry is the delay after the provider rejected the pod. A change of the pod ends the delay; the backend's decision may also
	// change.
	rejectedRetry = 10 * time.Minute
	// longestRetryAfter is the longest delay that an error can request (errdefs.RetryAfter).
	longestRetryAfter = 10 * time.Minute
)

// ShouldRetryFunc decides, after work on a pod failed, whether and when it is tried again. key is namespace/name, timesTried counts from 1,
// and originallyAdded is the time of the first request for the work. A change of the desired pod resets both. If it returns an error, there
// is no retry until the pod changes or a resync. If it returns nil and nil, the rate limiter determines the delay. A returned duration is
// the delay; with a negative duration, the work comes before all other work.
type ShouldRetryFunc = func(ctx context.Context, key string, timesTried int, originallyAdded time.Time, err error) (*time.Duration, error)

// retryPolicy is the policy of a lane: one of the three of the configuration (for provider calls, removals, and
// status writes), or the policy of the poll lane.
type retryPolicy struct {
	limiter workqueue.TypedRateLimiter[any]
	should  ShouldRetryFunc
	// until, if not nil, returns the maximum delay of a retry for the pod, and false if there is none.
	until func(ctx context.Context, key string) (time.Duration, bool)
	// failed handles each failure, and receives the time of the next try.
	failed func(ctx context.Context, key string, err error, next time.Duration, again bool)
}

func (p *retryPolicy) Failed(ctx context.Context, key string, tries int, firstAdded time.Time, err error) (time.Duration, bool) {
	delay, again := p.decideRetry(ctx, key, tries, firstAdded, err)
	if again && p.until != nil {
		if left, has := p.until(ctx, key); has && left > 0 {
			delay = min(delay, left)
		}
	}
	p.failed(ctx, key, err, delay, again)
	return delay, again
}

func (p *retryPolicy) decideRetry(ctx context.Context, key string, tries int, firstAdded time.Time, err error) (time.Duration, bool) {
	if p.should != nil {
		d, giveUp := p.should(ctx, key, tries, firstAdded, err)
		if giveUp != nil {
			return 0, false
		}
		if d != nil {
			return *d, true
		}
	}
	delay := backoffAfter(tries)
	switch {
	case p.limiter != nil:
		delay = p.limiter.When(key)
	case isRejected(err):
		delay = rejectedRetry
	}
	if after, says := errdefs.RetryAfterOf(err); says {
		delay = min(max(after, firstRetry), longestRetryAfter)
	}
	return delay, true
}

// Succeeded resets the pod's failures in the rate limiter.
func (p *retryPolicy) Succeeded(key string) {
	if p.limiter != nil {
		p.limiter.Forget(key)
	}
}

// backoffAfter doubles from 250 ms to 60 s.
func backoffAfter(tries int) time.Duration {
	d := firstRetry
	for i := 1; i < tries && d < lastRetry; i++ {
		d *= 2
	}
	return min(d, lastRetry)
}
