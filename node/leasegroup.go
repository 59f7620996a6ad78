// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"
)

// LeaseGroup tells a process about the processes that share nodes with it. Its methods are safe for concurrent use.
type LeaseGroup interface {
	// Member returns the name of this process in the group. The name does not change.
	Member() string
	// Holds reports whether this process has certainly been in the group since that time. It must return at once.
	Holds(since time.Time) bool
	// Gone reports whether another member can no longer act for a node. The answer uses only data that is read during the call. A member
	// that held the node before and is not gone must report false from its own Holds for all earlier times before it renews the lease of
	// the node.
	Gone(ctx context.Context, member string) bool
}
