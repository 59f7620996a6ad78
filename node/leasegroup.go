// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"
)

// LeaseGroup is a process's knowledge about the processes that share nodes with it. Its methods are safe for
// concurrent use.
type LeaseGroup interface {
	// Member returns the name of this process in the group. The name does not change.
	Member() string
	// Holds reports whether this process has certainly been in the group all the time since then. It must return
	// at once.
	Holds(since time.Time) bool
	// Gone reports whether another member can no longer act for a node. The answer relies on data that is read
	// within the call. A member that held the node before and is not gone must make its own Holds false for the
	// time before it renews the lease of the node.
	Gone(ctx context.Context, member string) bool
}
