// SPDX-License-Identifier: Apache-2.0

package node

import (
	"math/rand/v2"
	"time"
)

// retryPause doubles the pause between tries from first to max. The pauses are
// shortened by up to a fifth at random, so that nodes do not come together.
type retryPause struct {
	first, max time.Duration
	pause      time.Duration
}

func (b *retryPause) next() time.Duration {
	b.pause = min(max(2*b.pause, b.first), b.max)
	return b.pause - time.Duration(rand.Int64N(int64(b.pause)/5+1))
}

func (b *retryPause) reset() { b.pause = 0 }
