// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/keyqueue"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	leaseFirstRetry = 200 * time.Millisecond
	// wantedSpacing limits early renewals on request to one a second.
	wantedSpacing = time.Second
)

// run renews the lease until ctx ends. Without a leaseHolder it starts when the node is registered, because the lease is not needed before.
func (r *leaseRenewer) run(ctx context.Context) {
	retry := retryPause{first: leaseFirstRetry}
	begun := time.Now()
	due := begun.Add(r.interval) // the first renewal waits for the first owner, which is known by now
	if r.holder != nil {
		due = begun
	}
	soonest := begun // the earliest time of the next early renewal
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			r.giveUp(ctx)
			return
		case <-r.owners.wake:
		case <-r.holder.earlyRenewal():
			due = earlierOf(due, soonest)
			timer.Reset(time.Until(due))
			continue
		case <-timer.C:
		}
		if owner, ok := r.owners.take(); ok {
			r.owner = owner
		}
		begun = time.Now()
		var pause time.Duration
		var err error
		keyqueue.Do(ctx, func() { pause, err = r.takeTurn(ctx) })
		if ctx.Err() != nil {
			continue
		}
		r.logFailure(ctx, err)
		if err != nil {
			retry.max = min(r.holder.maxRetry(), r.interval)
			soonest = time.Now().Add(retry.next())
			due = soonest
		} else {
			retry.reset()
			due, soonest = begun.Add(pause), begun.Add(wantedSpacing)
		}
		timer.Reset(time.Until(due))
	}
}

// takeTurn renews the lease, or checks whether the lease is free. It returns the time until the next turn.
func (r *leaseRenewer) takeTurn(ctx context.Context) (time.Duration, error) {
	err := r.renewLease(ctx)
	if r.holder == nil {
		return r.interval, err
	}
	r.holder.checkAnswer(ctx, err)
	if r.holder.left > 0 {
		r.lease = nil // the lease belongs to another process and must be read each time
	}
	return r.holder.pause(r.interval), err
}

// logFailure logs the first failure in a row, and the end of the row.
func (r *leaseRenewer) logFailure(ctx context.Context, err error) {
	switch {
	case err != nil:
		leaseRenewFailures.Inc()
		if !r.failed {
			log.G(ctx).WithError(err).Warn("the node lease is not renewed, trying again")
		}
	case r.failed:
		log.G(ctx).Info("the node lease is renewed again")
	}
	r.failed = err != nil
}

func (r *leaseRenewer) renewLease(ctx context.Context) (err error) {
	for range leaseTries {
		err = r.tryRenew(ctx)
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
		r.lease = nil
	}
	if err != nil {
		if !apierrors.IsTooManyRequests(err) { // a 429 means that the lease did not change
			r.lease = nil // the outcome is unknown, for example after a timeout
		}
		return fmt.Errorf("renew lease of node %s: %w", r.name, err)
	}
	return nil
}

// tryRenew reads the lease if it is not known, and then creates or updates it.
func (r *leaseRenewer) tryRenew(ctx context.Context) error {
	if r.lease == nil {
		lease, err := withTimeout(ctx, r.timeout(), func(ctx context.Context) (*coordinationv1.Lease, error) {
			return r.client.Get(ctx, r.name, metav1.GetOptions{})
		})
		if apierrors.IsNotFound(err) {
			if !r.holder.mayTake(ctx, nil) {
				return nil
			}
			return r.createLease(ctx)
		}
		if err != nil {
			return err
		}
		r.lease = lease
	}
	if !r.holder.mayTake(ctx, r.lease) {
		return r.announceStandby(ctx)
	}
	return r.takeLease(ctx, r.renewedCopy(ctx, r.lease), r.updateLease)
}

// takeLease sends the lease with create or update, with this process as the holder.
func (r *leaseRenewer) takeLease(ctx context.Context, lease *coordinationv1.Lease, send func(context.Context, *coordinationv1.Lease) (*coordinationv1.Lease, error)) error {
	sent := time.Now()
	got, err := withTimeout(ctx, r.timeout(), func(ctx context.Context) (*coordinationv1.Lease, error) { return send(ctx, lease) })
	if err != nil {
		return err
	}
	r.lease, r.held = got, true
	r.holder.recordHeld(ctx, got, sent)
	return nil
}

func (r *leaseRenewer) createLease(ctx context.Context) error {
	if r.held {
		r.gone()
	}
	empty := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: r.name}}
	return r.takeLease(ctx, r.renewedCopy(ctx, empty), func(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		return r.client.Create(ctx, lease, metav1.CreateOptions{})
	})
}
