// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"time"
)

// startTurn is how long a start waits at most for others that are under way: one that hangs must not keep others from starting.
const startTurn = 10 * time.Second

// starts bounds how many sandboxes and containers start at once. More than the CPUs can work on take longer all together, and the first of
// them as long as the last. The nil one bounds nothing.
type starts chan struct{}

// newStarts lets as many start at once as the CPUs are busy with: a start also waits for the disk.
func newStarts() starts {
	if n, err := strconv.Atoi(os.Getenv("I13_LIMIT")); err == nil {
		if n == 0 {
			return nil
		}
		return make(starts, n)
	}
	return make(starts, 2*runtime.GOMAXPROCS(0))
}

// begin returns when there is a turn, or when it has waited long enough. The start ends with a call of end.
func (s starts) begin(ctx context.Context) (end func()) {
	if s == nil {
		return func() {}
	}
	late := time.NewTimer(startTurn)
	defer late.Stop()
	select {
	case s <- struct{}{}:
		return func() { <-s }
	case <-late.C:
	case <-ctx.Done():
	}
	return func() {}
}
