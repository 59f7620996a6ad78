// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/apiwatch"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// guardMaxRetry is short: pods wait for the renewal.
	guardMaxRetry = 1500 * time.Millisecond
	// watchedInterval is how often the lease is renewed while another process waits
	// for it, so that a renewal or two may fail before that process takes over.
	watchedInterval = 3 * time.Second
	// lookInterval is how often a process that waits looks at the lease.
	lookInterval = 2 * time.Second
	// announceEvery is how often a process that waits says so, and watchedFor
	// is how long the holder believes it.
	announceEvery = 15 * time.Second
	watchedFor    = 40 * time.Second
	// forbiddenFor is how long the lease must be forbidden for us to do without it: an
	// API server that starts forbids much.
	forbiddenFor = 4 * time.Second
	// podsEndIn and giveUpIn bound the end of Run.
	podsEndIn = 3 * time.Second
	giveUpIn  = 2 * time.Second
)

// leaseHolder makes the lease say which process may act for the node. Its methods do
// nothing for a nil guard. All but fence is owned by the lease's goroutine.
type leaseHolder struct {
	claim lease.Claim
	fence *lease.Fence
	pods  *PodController
	holds *latest[bool] // tells whether the node is ours to write

	left      time.Duration // how long the lease is at least another's, 0 if it is ours
	logged    string        // the holder that was logged
	announced time.Time     // when we last said that we wait
	watched   time.Time     // until when somebody is believed to wait
	forbidden time.Time     // since when the lease is forbidden
	off       bool          // it can say nothing
}

func newLeaseHolder(self lease.Mark, pods *PodController) *leaseHolder {
	return &leaseHolder{claim: lease.Claim{Self: self, Ended: self.Ended}, fence: lease.NewFence(), pods: pods}
}

func (g *leaseHolder) tellHeld(holds *latest[bool]) {
	if g != nil {
		g.holds = holds
	}
}

func (g *leaseHolder) maxRetry() time.Duration {
	if g == nil || g.off {
		return leaseMaxRetry
	}
	return guardMaxRetry
}

// wanted receives when a renewal is wanted before it is due.
func (g *leaseHolder) wanted() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.fence.Wanted
}

// pause is how long the lease may be left alone.
func (g *leaseHolder) pause(interval time.Duration) time.Duration {
	switch {
	case g.left > 0:
		return min(g.left, lookInterval)
	case time.Now().Before(g.watched):
		return min(interval, watchedInterval)
	}
	return min(interval, lease.MaxAge)
}

// mayTake reports whether the lease is ours to write, as it was last seen; nil: there
// is none.
func (g *leaseHolder) mayTake(ctx context.Context, found *coordinationv1.Lease) bool {
	if g == nil {
		return true
	}
	if found != nil && found.Annotations[lease.StandbyAnnotation] != "" {
		g.watched = time.Now().Add(watchedFor)
	}
	var result lease.Result
	result, g.left = g.claim.Judge(found, time.Now())
	if result == lease.Theirs {
		g.standBy(ctx)
		return false
	}
	// A lease that went is ours, if it was so a moment ago: who else is there waits.
	g.claim.Anew = g.claim.Anew || result == lease.Free && (found != nil || !g.claim.Held || !g.fence.Fresh())
	return true
}

// standBy leaves the node to the process that has the lease.
func (g *leaseHolder) standBy(ctx context.Context) {
	holder := lease.ParseMark(g.claim.Holder)
	g.fence.Lose(holder)
	g.holds.put(false)
	g.claim.Anew, g.off = true, false
	if g.logged != holder.ID {
		g.logged = holder.ID
		log.G(ctx).WithField("holder", holder.String()).Warn("another process acts for this node; standing by until it has ended")
	}
}

// mark writes our name on a lease, and takes away the word of who waits.
func (g *leaseHolder) mark(found *coordinationv1.Lease) {
	if g == nil {
		return
	}
	if found.Annotations == nil {
		found.Annotations = map[string]string{}
	}
	found.Annotations[lease.HolderAnnotation] = g.claim.Self.Text()
	delete(found.Annotations, lease.StandbyAnnotation)
}

// took notes that the lease is ours since the request that was sent then.
func (g *leaseHolder) took(ctx context.Context, found *coordinationv1.Lease, sent time.Time) {
	if g == nil {
		return
	}
	if found.Annotations[lease.HolderAnnotation] != g.claim.Self.Text() {
		g.disable(ctx, "the lease of the node keeps no annotations")
		return
	}
	anew := g.claim.Anew
	g.claim.Took(found)
	g.off = false
	g.fence.Renewed(sent, anew)
	g.holds.put(true)
	if g.logged != "" {
		g.logged = ""
		log.G(ctx).Info("this process acts for the node now")
	}
}

// answered looks whether a renewal was answered, and whether the lease is forbidden, so that it cannot say anything.
func (g *leaseHolder) answered(ctx context.Context, err error) {
	if apiwatch.Unanswered(err) {
		g.fence.Unanswered()
	}
	if !apierrors.IsForbidden(err) {
		g.forbidden = time.Time{}
		return
	}
	if g.forbidden.IsZero() {
		g.forbidden = time.Now()
	}
	if time.Since(g.forbidden) >= forbiddenFor {
		g.disable(ctx, "the lease of the node is forbidden")
	}
}

// disable lets this process act without a lease to go by.
func (g *leaseHolder) disable(ctx context.Context, why string) {
	if g.off {
		return
	}
	g.off, g.left = true, 0
	log.G(ctx).Warn(why + ": nothing keeps a second daemon for this node from acting at the same time")
	g.fence.Disable()
	g.holds.put(true)
}

// announce says on the lease of another process that we wait for it. If that fails,
// the other merely renews it less often.
func (k *leaseRenewer) announce(ctx context.Context) error {
	g := k.guard
	if k.lease.Annotations[lease.StandbyAnnotation] != "" || !g.announced.IsZero() && time.Since(g.announced) < announceEvery {
		return nil
	}
	mine := k.lease.DeepCopy()
	metav1.SetMetaDataAnnotation(&mine.ObjectMeta, lease.StandbyAnnotation, g.claim.Self.Text())
	_, err := timed(ctx, k.timeout(), func(ctx context.Context) (*coordinationv1.Lease, error) { return k.update(ctx, mine) })
	if err != nil {
		log.G(ctx).WithError(err).Debug("cannot say on the lease that this process stands by")
		return nil
	}
	g.announced = time.Now()
	return nil
}

// giveUp lets another process have the lease at once, when all work on pods
// has ended.
func (k *leaseRenewer) giveUp(ctx context.Context) {
	if k.guard == nil || !k.guard.claim.Held || !k.guard.podsEnded() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpIn)
	defer cancel()
	var err error
	for range leaseTries {
		if err = k.tryGiveUp(ctx); !apierrors.IsConflict(err) {
			break
		}
		k.lease = nil // somebody says that they wait
	}
	if err != nil {
		log.G(ctx).WithError(err).Debug("the node lease is not given up; it will be free when it is old")
	}
}

func (k *leaseRenewer) tryGiveUp(ctx context.Context) (err error) {
	if k.lease == nil {
		if k.lease, err = k.client.Get(ctx, k.name, metav1.GetOptions{}); err != nil {
			return err
		}
	}
	if k.lease.Annotations[lease.HolderAnnotation] != k.guard.claim.Self.Text() {
		return nil
	}
	mine := k.lease.DeepCopy()
	mine.Annotations[lease.HolderAnnotation] = ""
	_, err = k.update(ctx, mine)
	return err
}

// podsEnded waits for the end of the pod controller, if it was run: calls of the
// provider that go on must not meet those of another process.
func (g *leaseHolder) podsEnded() bool {
	if !g.pods.begun() {
		return true
	}
	timer := time.NewTimer(podsEndIn)
	defer timer.Stop()
	select {
	case <-g.pods.Done():
		return true
	case <-timer.C:
		return false
	}
}
