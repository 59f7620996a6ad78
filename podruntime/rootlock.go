// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"os"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// lockAgain is how long it takes to notice that another process has let go of the directory.
const lockAgain = 200 * time.Millisecond

// lock waits until no other process uses the directory: two of them would start each container twice, for
// neither sees what the other has only begun. A process that is about to end is waited for; so is one that
// was frozen, until somebody ends it. It returns nil when ctx has ended.
func (r *Runtime) lock(ctx context.Context) (*os.File, error) {
	for waits := false; ctx.Err() == nil; waits = true {
		f, err := lockRoot(r.cfg.Root)
		if f != nil || err != nil {
			return f, err
		}
		if !waits {
			r.taken.Store(true)
			log.G(ctx).WithField("root", r.cfg.Root).Warn("another process uses the directory for pods; waiting until it has ended")
			defer r.taken.Store(false)
		}
		select {
		case <-time.After(lockAgain):
		case <-ctx.Done():
		}
	}
	return nil, nil
}
