// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"
)

// stuckAfter is how long after the end of its grace period a pod may still exist before it counts as stuck.
const stuckAfter = time.Minute

// countStuck counts the deleted pods that the backend does not release.
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
