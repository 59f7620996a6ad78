// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"
)

// stuckAfter is how long after its grace period a deleted pod counts as stuck.
const stuckAfter = time.Minute

// countStuck counts the deleted pods that the backend has not stopped in time.
func (c *podCore) countStuck(ctx context.Context) (stuck int) {
	for _, api := range c.all(ctx) {
		// The deletion timestamp is the end of the grace period.
		if api.DeletionTimestamp != nil && time.Since(api.DeletionTimestamp.Time) > stuckAfter &&
			!c.states.isTerminated(keyOf(api), api) {
			stuck++
		}
	}
	return stuck
}
