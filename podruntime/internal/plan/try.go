// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

const (
	// retryFirst and retryMost bound the delay after a failed action.
	retryFirst = time.Second
	retryMost  = 10 * time.Second
	// retryStart is the delay after a failed start of a container.
	retryStart = 10 * time.Second
	// settleAfter bounds the time until the runtime's state shows the result of an action.
	settleAfter = 10 * time.Second
)

// try is an action that is retried until it succeeds.
type try struct {
	busy     bool
	failures int
	again    time.Time // earliest time of the next attempt
	message  string    // error of the last attempt
}

func (t *try) beginTry() { t.busy = true }

func (t *try) endTry(o Outcome, now time.Time) (ok bool) {
	t.busy = false
	if o.Reason == "" {
		t.failures, t.again, t.message = 0, time.Time{}, ""
		return true
	}
	wait := retryMost
	if t.failures < 4 {
		wait = retryFirst << t.failures
	}
	if o.RetryAfter > 0 {
		wait = o.RetryAfter
	}
	t.failures++
	t.again, t.message = now.Add(wait), o.Message
	return false
}

// isDue reports whether the action can begin. If only a delay prevents it, isDue schedules the next call of Next.
func (t try) isDue(p *planner) bool {
	if t.busy {
		return false
	}
	if p.now.Before(t.again) {
		p.callAgain(t.again)
		return false
	}
	return true
}
