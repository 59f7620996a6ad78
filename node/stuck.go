// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// stuckAfter is how long after the end of its grace period a pod may still be
// there before it counts as stuck.
const stuckAfter = time.Minute

// countStuck counts the deleted pods that the backend does not let go.
func (c *PodController) countStuck(ctx context.Context) {
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		return // it reads memory
	}
	stuck := 0
	for _, api := range pods {
		// The deletion timestamp is the end of the grace period.
		if api.DeletionTimestamp != nil && time.Since(api.DeletionTimestamp.Time) > stuckAfter &&
			c.wanted(ctx, api) && !c.terminated(keyOf(api), api) {
			stuck++
		}
	}
	c.gauges.stuck.Set(float64(stuck))
}
