// SPDX-License-Identifier: Apache-2.0

package node

import "time"

const (
	writeBurst = 5
	writeEvery = time.Second
)

// writeBudget limits the writes for a pod with a flapping status to one per second, after a burst of five.
type writeBudget struct {
	spent int
	since time.Time // when spent was last reduced
}

// take spends a write and returns 0, or returns the time until the next write is allowed.
func (b *writeBudget) take(now time.Time) time.Duration {
	back := int(now.Sub(b.since) / writeEvery)
	if b.spent -= back; b.spent <= 0 {
		b.spent, b.since = 0, now
	} else {
		b.since = b.since.Add(time.Duration(back) * writeEvery)
	}
	if b.spent >= writeBurst {
		return b.since.Add(writeEvery).Sub(now)
	}
	b.spent++
	return 0
}
