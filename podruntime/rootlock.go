// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// lockAgain is the interval of checks whether another process has released the directory.
const lockAgain = 200 * time.Millisecond

// rootLock prevents other processes from using the directory of pods.
type rootLock struct {
	dir   string
	taken atomic.Bool // another process uses the directory
}

// awaitLock waits until no other process uses the directory. Two processes would start containers twice, because neither sees the other's starting
// containers. awaitLock also waits for a process that is ending or frozen. It returns nil if ctx ends.
func (l *rootLock) awaitLock(ctx context.Context) (*os.File, error) {
	for waits := false; ctx.Err() == nil; waits = true {
		f, err := lockRoot(l.dir)
		if f != nil || err != nil {
			return f, err
		}
		if !waits {
			l.taken.Store(true)
			log.G(ctx).WithField("root", l.dir).Warn("another process uses the directory for pods; waiting until it has ended")
			defer l.taken.Store(false)
		}
		select {
		case <-time.After(lockAgain):
		case <-ctx.Done():
		}
	}
	return nil, nil
}
