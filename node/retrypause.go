// SPDX-License-Identifier: Apache-2.0

package node

import (
	"math/rand/v2"
	"time"
)

// retryPause doubles the pause between tries from first to max. The pauses are shortened by up to a fifth at
// random, so that nodes do not try at the same time.
type retryPause struct {
	first, max time.Duration
	pause      time.Duration
}

func (p *retryPause) next() time.Duration {
	p.pause = min(max(2*p.pause, p.first), p.max)
	return p.pause - time.Duration(rand.Int64N(int64(p.pause)/5+1))
}

func (p *retryPause) reset() { p.pause = 0 }

// earlierOf returns the earlier of two times.
func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
