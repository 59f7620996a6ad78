// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

const (
	// retryFirst and retryMost bound the time after which an action that failed is tried again.
	retryFirst = time.Second
	retryMost  = 10 * time.Second
	// retryStart is the time after which a container that could not be started is tried again.
	retryStart = 10 * time.Second
	// settleAfter is how long the runtime may take to show what it has done.
	settleAfter = 10 * time.Second
)

// try is an action that is tried until it succeeds.
type try struct {
	busy     bool
	failures int
	again    time.Time // not before
	message  string    // of the last failure
}

func (t *try) begin() { t.busy = true }

func (t *try) end(o Outcome, now time.Time) (ok bool) {
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

// due reports whether the action can be begun; if only the time keeps it, p looks again then.
func (t try) due(p *planner) bool {
	if t.busy {
		return false
	}
	if p.now.Before(t.again) {
		p.wait(t.again)
		return false
	}
	return true
}
