// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordclientset "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
)

const (
	leaseFirstRetry = 200 * time.Millisecond
	leaseMaxRetry   = 7 * time.Second
	// leaseTries is how many requests a renewal may take when the lease is
	// not what we believed: update, read, update or create.
	leaseTries = 4
	// wantedSpacing keeps those who want a renewal before it is due from asking for more
	// than one a second.
	wantedSpacing = time.Second
)

// leaseRenewer renews the lease of the node: a sign that this process lives. It
// says nothing about the provider; the Ready condition does. It has its own
// goroutine, so that nothing else the node does can hold up a renewal. With a
// leaseHolder, the lease also says which of several processes may act for the node.
type leaseRenewer struct {
	client          coordclientset.LeaseInterface
	durationSeconds int32
	interval        time.Duration

	// Set before run, constant afterwards.
	name   string
	owners *latest[types.UID] // UIDs of the node object as it is registered again
	gone   func()             // told when the lease vanished, as it does with its node
	holder *leaseHolder       // nil: nothing but the name of the node is on the lease

	// Owned by run.
	lease  *coordinationv1.Lease // as last seen, nil if unknown
	held   bool                  // it was ours before
	owner  types.UID
	rival  string // another holder that was already logged
	failed bool
}

// run renews the lease until ctx ends. Without a leaseHolder it begins when the node is
// registered, because it is not needed before.
func (r *leaseRenewer) run(ctx context.Context) {
	retry := retryPause{first: leaseFirstRetry}
	begun := time.Now()
	due := begun.Add(r.interval) // The first renewal is due to the first owner, which is known by now.
	if r.holder != nil {
		due = begun
	}
	soonest := begun // when a renewal that is wanted before it is due may be
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			r.giveUp(ctx)
			return
		case <-r.owners.wake:
		case <-r.holder.wanted():
			due = earlier(due, soonest)
			timer.Reset(time.Until(due))
			continue
		case <-timer.C:
		}
		if owner, ok := r.owners.take(); ok {
			r.owner = owner
		}
		begun = time.Now()
		pause, err := r.turn(ctx)
		if ctx.Err() != nil {
			continue
		}
		r.note(ctx, err)
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

// turn renews the lease, or looks whether it can be had, and returns after which
// time to do so again.
func (r *leaseRenewer) turn(ctx context.Context) (time.Duration, error) {
	err := r.renew(ctx)
	if r.holder == nil {
		return r.interval, err
	}
	r.holder.answered(ctx, err)
	if r.holder.left > 0 {
		r.lease = nil // another's: it has to be read each time
	}
	return r.holder.pause(r.interval), err
}

// note logs the first failure in a row, and the end of the row.
func (r *leaseRenewer) note(ctx context.Context, err error) {
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

func (r *leaseRenewer) renew(ctx context.Context) (err error) {
	ctx, span := trace.StartSpan(ctx, "node.renewLease")
	defer func() {
		span.SetStatus(err)
		span.End()
	}()
	for range leaseTries {
		err = r.try(ctx)
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
		r.lease = nil
	}
	if err != nil {
		if !apierrors.IsTooManyRequests(err) { // else nothing happened to it
			r.lease = nil // what happened is unknown, after a time-out for example
		}
		return fmt.Errorf("renew lease of node %s: %w", r.name, err)
	}
	return nil
}

// try reads the lease if it is not known, and then creates or updates it.
func (r *leaseRenewer) try(ctx context.Context) error {
	if r.lease == nil {
		lease, err := timed(ctx, r.timeout(), func(ctx context.Context) (*coordinationv1.Lease, error) {
			return r.client.Get(ctx, r.name, metav1.GetOptions{})
		})
		if apierrors.IsNotFound(err) {
			if !r.holder.mayTake(ctx, nil) {
				return nil
			}
			return r.create(ctx)
		}
		if err != nil {
			return err
		}
		r.lease = lease
	}
	if !r.holder.mayTake(ctx, r.lease) {
		return r.announce(ctx)
	}
	return r.take(ctx, r.renewed(ctx, r.lease), r.update)
}

func (r *leaseRenewer) update(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return r.client.Update(ctx, lease, metav1.UpdateOptions{})
}

// take sends the lease as we hold it with create or update.
func (r *leaseRenewer) take(ctx context.Context, lease *coordinationv1.Lease, send func(context.Context, *coordinationv1.Lease) (*coordinationv1.Lease, error)) error {
	sent := time.Now()
	got, err := timed(ctx, r.timeout(), func(ctx context.Context) (*coordinationv1.Lease, error) { return send(ctx, lease) })
	if err != nil {
		return err
	}
	r.lease, r.held = got, true
	r.holder.took(ctx, got, sent)
	return nil
}

func (r *leaseRenewer) create(ctx context.Context) error {
	if r.held {
		r.gone()
	}
	empty := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: r.name}}
	return r.take(ctx, r.renewed(ctx, empty), func(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		return r.client.Create(ctx, lease, metav1.CreateOptions{})
	})
}

// renewed returns a copy of seen that names the node as holder from now on. Another name in spec.holderIdentity is replaced: the
// lease of a node is the node's. Which of its processes has it says the annotation, of which leaseHolder decides before.
func (r *leaseRenewer) renewed(ctx context.Context, seen *coordinationv1.Lease) *coordinationv1.Lease {
	if holder := ptr.Deref(seen.Spec.HolderIdentity, r.name); holder != r.name && holder != r.rival {
		r.rival = holder
		log.G(ctx).WithField("holder", holder).Warn("spec.holderIdentity of the lease names another holder than this node: replacing it; does another program use the lease of this node?")
	}
	lease := seen.DeepCopy()
	lease.Spec.HolderIdentity = ptr.To(r.name)
	lease.Spec.LeaseDurationSeconds = ptr.To(r.durationSeconds)
	lease.Spec.RenewTime = ptr.To(laterThan(seen.Spec.RenewTime, metav1.NowMicro()))
	lease.OwnerReferences = r.ownedByNode(lease.OwnerReferences)
	r.holder.mark(lease)
	return lease
}

// laterThan returns now, or the next moment after seen when the clock was set back
// since: the control plane does not take an earlier time for a renewal, and
// would declare the node dead until the clock has caught up.
func laterThan(seen *metav1.MicroTime, now metav1.MicroTime) metav1.MicroTime {
	if seen == nil || seen.Before(&now) {
		return now
	}
	return metav1.NewMicroTime(seen.Add(time.Microsecond))
}

// ownedByNode replaces owners of the kind Node by the current one: the garbage
// collector deletes a lease whose only owner is a node that no longer exists.
func (r *leaseRenewer) ownedByNode(refs []metav1.OwnerReference) []metav1.OwnerReference {
	if r.owner == "" {
		return refs
	}
	node := corev1.SchemeGroupVersion.WithKind("Node")
	others := slices.DeleteFunc(refs, func(ref metav1.OwnerReference) bool {
		return ref.APIVersion == node.GroupVersion().String() && ref.Kind == node.Kind
	})
	return append(others, metav1.OwnerReference{
		APIVersion: node.GroupVersion().String(), Kind: node.Kind, Name: r.name, UID: r.owner,
	})
}

// timeout of one request: two of them fit into half of the lease duration.
func (r *leaseRenewer) timeout() time.Duration {
	return min(requestTimeout, time.Duration(r.durationSeconds)*time.Second/4)
}
