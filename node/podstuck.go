// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
)

// stuckAfter is how long after the end of its grace period a pod may still be
// there before it counts as stuck.
const stuckAfter = time.Minute

var podsStuck = metrics.NewGauge("virtual_kubelet_pods_terminating_stuck", "Deleted pods whose grace period ended more than a minute ago and whose stop the backend has not confirmed.")

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
			c.wanted(ctx, api) && !c.settled(keyOf(api), api) {
			stuck++
		}
	}
	podsStuck.Set(float64(stuck))
}
