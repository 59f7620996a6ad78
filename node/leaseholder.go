// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtual-kubelet/virtual-kubelet/internal/apiwatch"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	leaseMaxRetry = 7 * time.Second
	// holderMaxRetry is short because pods wait for the renewal.
	holderMaxRetry = 1500 * time.Millisecond
	// watchedInterval is the renewal interval of the lease while another process waits for it. One or two renewals may fail before that
	// process takes over.
	watchedInterval = 3 * time.Second
	// lookInterval is the interval at which a waiting process reads the lease.
	lookInterval = 2 * time.Second
	// announceEvery is the interval at which a waiting process announces itself. watchedFor is the time for which an announcement is valid.
	announceEvery = 15 * time.Second
	watchedFor    = 40 * time.Second
	// forbiddenFor is the time for which the lease must be forbidden before this process acts without it. A starting API server forbids
	// many requests.
	forbiddenFor = 4 * time.Second
	// podsEndIn and giveUpIn bound the end of Run.
	podsEndIn = 3 * time.Second
	giveUpIn  = 2 * time.Second
)

// leaseHolder records in the lease which process may act for the node. Its methods do nothing for a nil leaseHolder. The goroutine of the
// lease owns all fields except fence.
type leaseHolder struct {
	claim lease.Claim
	ended func(lease.Mark) bool // reports whether a process has provably ended
	group LeaseGroup            // nil: no other process shares this node
	fence *lease.Fence
	pods  *PodController
	holds *latest[bool] // receives whether this process may write the node
	ours  *bool         // the last value sent to holds; nil: none

	left      time.Duration // minimum time for which another process still holds the lease, 0 if this process holds it
	logged    string        // the holder that was logged
	announced time.Time     // when this process last announced itself
	watched   time.Time     // the time until which another process is assumed to wait
	forbidden time.Time     // the time since which the lease is forbidden
	off       bool          // the lease is disabled
	told      bool          // it was logged that the lease cannot be used and the node is shared
}

func newLeaseHolder(self lease.Mark, pods *PodController, group LeaseGroup) *leaseHolder {
	h := &leaseHolder{claim: lease.Claim{Self: self}, ended: self.Ended, fence: lease.NewFence(), pods: pods, group: group}
	if group != nil {
		h.claim.Self.Member = group.Member()
		h.fence.Beyond = group.Holds
	}
	return h
}

func (h *leaseHolder) tellHeld(holds *latest[bool]) {
	if h != nil {
		h.holds = holds
	}
}

// tellFence sends whether this process may write the node, if that has changed. If it sent after each renewal, the node would compare its
// whole state each time.
func (h *leaseHolder) tellFence(ours bool) {
	if h.ours == nil || *h.ours != ours {
		h.ours = &ours
		h.holds.put(ours)
	}
}

func (h *leaseHolder) maxRetry() time.Duration {
	if h == nil || h.off {
		return leaseMaxRetry
	}
	return holderMaxRetry
}

// earlyRenewal returns a channel that receives when an early renewal is wanted.
func (h *leaseHolder) earlyRenewal() <-chan struct{} {
	if h == nil {
		return nil
	}
	return h.fence.Wanted
}

// pause returns the time until the lease must be read or renewed next.
func (h *leaseHolder) pause(interval time.Duration) time.Duration {
	switch {
	case h.left > 0:
		return min(h.left, lookInterval)
	case time.Now().Before(h.watched):
		return min(interval, watchedInterval)
	}
	return min(interval, lease.MaxAge)
}

// mayTake reports whether this process may write the lease in its last seen state; nil means that there is no
// lease.
func (h *leaseHolder) mayTake(ctx context.Context, found *coordinationv1.Lease) bool {
	if h == nil {
		return true
	}
	if found != nil && found.Annotations[lease.StandbyAnnotation] != "" {
		h.watched = time.Now().Add(watchedFor)
	}
	h.claim.Ended = func(m lease.Mark) bool { return h.ended(m) || h.group != nil && h.group.Gone(ctx, m.Member) }
	var result lease.Result
	result, h.left = h.claim.Judge(found, time.Now())
	if result == lease.Theirs {
		h.standBy(ctx)
		return false
	}
	// A deleted lease still belongs to this process if this process held it until now, because other processes wait.
	if wasOurs := found == nil && h.claim.Held && h.fence.Fresh(); result == lease.Free && !wasOurs {
		h.claim.Anew = true
	}
	return true
}

// standBy makes this process wait while another process holds the lease.
func (h *leaseHolder) standBy(ctx context.Context) {
	holder := lease.ParseMark(h.claim.Holder)
	h.fence.Lose(holder)
	h.tellFence(false)
	h.claim.Anew, h.off = true, false
	if h.logged != holder.ID {
		h.logged = holder.ID
		log.G(ctx).WithField("holder", holder.String()).Warn("another process acts for this node; standing by until it has ended")
	}
}

// markLease writes the name of this process on a lease, and removes the announcement of the waiting process.
func (h *leaseHolder) markLease(found *coordinationv1.Lease) {
	if h == nil {
		return
	}
	if found.Annotations == nil {
		found.Annotations = map[string]string{}
	}
	found.Annotations[lease.HolderAnnotation] = h.claim.Self.Text()
	delete(found.Annotations, lease.StandbyAnnotation)
}

// recordHeld records that this process holds the lease since the time sent, when the request was sent.
func (h *leaseHolder) recordHeld(ctx context.Context, found *coordinationv1.Lease, sent time.Time) {
	if h == nil {
		return
	}
	if found.Annotations[lease.HolderAnnotation] != h.claim.Self.Text() {
		h.actWithoutLease(ctx, "the lease of the node keeps no annotations")
		return
	}
	anew := h.claim.Anew
	h.claim.Took(found)
	h.off = false
	h.fence.Renewed(sent, anew)
	h.tellFence(true)
	if h.logged != "" {
		h.logged = ""
		log.G(ctx).Info("this process acts for the node now")
	}
}

// checkAnswer checks whether the API server answered a renewal, and whether the lease is forbidden and therefore cannot be used.
func (h *leaseHolder) checkAnswer(ctx context.Context, err error) {
	if apiwatch.Unanswered(err) {
		h.fence.Unanswered()
	}
	if !apierrors.IsForbidden(err) {
		h.forbidden = time.Time{}
		return
	}
	if h.forbidden.IsZero() {
		h.forbidden = time.Now()
	}
	if time.Since(h.forbidden) >= forbiddenFor {
		h.actWithoutLease(ctx, "the lease of the node is forbidden")
	}
}

// actWithoutLease allows this process to act without a lease.
func (h *leaseHolder) actWithoutLease(ctx context.Context, why string) {
	if h.off {
		return
	}
	if h.group != nil { // another process certainly exists
		if !h.told {
			h.told = true
			log.G(ctx).Error(why + ": nothing is done for this node, which other processes share")
		}
		return
	}
	h.off, h.left = true, 0
	log.G(ctx).Warn(why + ": nothing keeps a second daemon for this node from acting at the same time")
	h.fence.Disable()
	h.tellFence(true)
}

// podsEnded waits for the end of the pod controller, if it was run. Ongoing provider calls must not overlap with calls of another process.
func (h *leaseHolder) podsEnded() bool {
	if !h.pods.wasBegun() {
		return true
	}
	timer := time.NewTimer(podsEndIn)
	defer timer.Stop()
	select {
	case <-h.pods.Done():
		return true
	case <-timer.C:
		return false
	}
}
