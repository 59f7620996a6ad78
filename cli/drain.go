// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// drainer is a node or a fleet of nodes.
type drainer interface {
	Drain(ctx context.Context, groups ...node.DrainGroup) error
}

// drain stops the pods of the drainer if the settings ask for it, and returns within --drain-timeout and a few seconds for the last
// statuses. If no drainer was sent to made yet, there are no pods to stop.
func (o *options) drain(ctx context.Context, made <-chan drainer) {
	if !o.DrainOnExit {
		return
	}
	select {
	case d := <-made:
		log.G(ctx).Infof("Draining for up to %s; another signal ends the program at once", o.DrainTimeout)
		if err := d.Drain(ctx, node.DrainGroups(o.DrainTimeout, o.DrainCriticalTimeout)...); err != nil {
			log.G(ctx).WithError(err).Error("Not everything was drained")
			return
		}
		log.G(ctx).Info("Drained")
	default:
	}
}
