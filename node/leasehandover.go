// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// announceStandby writes into the lease of another process that this process waits for it. If the write fails, the other process only
// renews the lease less often.
func (r *leaseRenewer) announceStandby(ctx context.Context) error {
	h := r.holder
	if r.lease.Annotations[lease.StandbyAnnotation] != "" || !h.announced.IsZero() && time.Since(h.announced) < announceEvery {
		return nil
	}
	mine := r.lease.DeepCopy()
	h.claim.Announce(mine)
	_, err := withTimeout(ctx, r.timeout(), func(ctx context.Context) (*coordinationv1.Lease, error) { return r.updateLease(ctx, mine) })
	if err != nil {
		log.G(ctx).WithError(err).Debug("cannot say on the lease that this process stands by")
		return nil
	}
	h.announced = time.Now()
	return nil
}

// giveUp releases the lease for another process as soon as all work on pods has ended. It is the last renewal. If no process takes the
// lease, the control plane marks the node as not ready after its own grace period.
func (r *leaseRenewer) giveUp(ctx context.Context) {
	if r.holder == nil || !r.holder.claim.Held || !r.holder.podsEnded() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpIn)
	defer cancel()
	var err error
	for range leaseTries {
		if err = r.tryGiveUp(ctx); !apierrors.IsConflict(err) {
			break
		}
		r.lease = nil // a waiting process has announced itself
	}
	if err != nil {
		log.G(ctx).WithError(err).Debug("the node lease is not given up; it will be free when it is old")
	}
}

func (r *leaseRenewer) tryGiveUp(ctx context.Context) (err error) {
	if r.lease == nil {
		if r.lease, err = r.client.Get(ctx, r.name, metav1.GetOptions{}); err != nil {
			return err
		}
	}
	if r.lease.Annotations[lease.HolderAnnotation] != r.holder.claim.Self.Text() {
		return nil
	}
	mine := r.renewedCopy(ctx, r.lease)
	mine.Annotations[lease.HolderAnnotation] = ""
	_, err = r.updateLease(ctx, mine)
	return err
}
