// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

const (
	backoffFirst = 10 * time.Second
	backoffMost  = 5 * time.Minute
	// backoffForget is the age at which a back-off is reset: the container has run long enough.
	backoffForget = 2 * backoffMost
)

// backoff is the time that a container waits after the end of an instance before it is started again.
type backoff struct {
	delay time.Duration
	set   time.Time // when the last instance was started
	hash  string    // hash of the container at that time: a change of the container resets the back-off
}

// backoffEnd returns the end of the back-off after an instance that ended at that time; zero means no back-off.
func (b backoff) backoffEnd(ended time.Time, hash string) time.Time {
	if b.hasExpired(ended, hash) {
		return time.Time{}
	}
	return ended.Add(b.delay)
}

// nextBackoff returns the back-off for the next start of the container.
func (b backoff) nextBackoff(ended time.Time, hash string, now time.Time) backoff {
	if b.hasExpired(ended, hash) {
		return backoff{backoffFirst, now, hash}
	}
	return backoff{min(2*b.delay, backoffMost), now, hash}
}

func (b backoff) hasExpired(ended time.Time, hash string) bool {
	return b.delay == 0 || b.hash != hash || ended.Sub(b.set) > backoffForget
}
