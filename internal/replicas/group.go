// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	coordclientset "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/internal/sleep"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// GroupLabel marks the lease of a process with the name of its group.
	GroupLabel = "virtual-kubelet.io/share-nodes"

	renewEvery = 2 * time.Second
	lookEvery  = time.Second
	retryEvery = 500 * time.Millisecond
	// overlapAfter is the wait before an unanswered renewal is sent again. A response after 5 s is still fresh enough for maxAge.
	overlapAfter = time.Second
	// requestTimeout bounds requests that are repeated without a response.
	requestTimeout = 2 * time.Second
	// leaveIn bounds the request of Leave.
	leaveIn = 2 * time.Second
)

// Group is the membership of this process in a group that shares nodes. Create it with New, run it, and call Leave after the last node has ended.
type Group struct {
	// Changed receives when the members have changed. It has a capacity of 1.
	Changed chan struct{}

	leases coordclientset.LeaseInterface
	name   string // of the group
	member string
	host   string

	mu    sync.Mutex
	view  view      // guarded by mu
	live  []string  // guarded by mu: at the last list
	sent  time.Time // guarded by mu: when the last successful renewal was sent
	since time.Time // guarded by mu: there has always been a fresh renewal since then
}

// New returns the membership of this process. member is unique and a valid name for a lease; host is for users.
func New(leases coordclientset.LeaseInterface, group, member, host string) *Group {
	return &Group{Changed: make(chan struct{}, 1), leases: leases, name: group, member: member, host: host}
}

// Member returns the name of this process in the group and of its lease.
func (g *Group) Member() string { return g.member }

// Holds reports whether this process has been a member without a gap since then. Then no other process can have taken its nodes.
func (g *Group) Holds(since time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.sent.IsZero() && lease.Elapsed(g.sent, time.Now()) < maxAge && !since.Before(g.since)
}

// Gone reports whether another member can no longer act for a node. The caller has read the lease of the node before, and it names the member. Gone
// reads the lease of the member, because a member that returns renews its own lease before the lease of a node.
func (g *Group) Gone(ctx context.Context, member string) bool {
	if member == "" || member == g.member {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	asked := time.Now() // the response is at least as new as this time, even if it arrives late
	read, err := g.leases.Get(ctx, member, metav1.GetOptions{})
	if err != nil {
		return false // also without a lease, because the lease of a live member may be deleted
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.view.isGone(member, read, asked)
}

// Live returns the members with a share of the nodes, including this process, sorted by name. It is empty until
// this process has joined.
func (g *Group) Live() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.live
}

// Run keeps this process in the group until ctx ends. An error means that the API server forbids it.
func (g *Group) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil) // before Wait
	wg.Go(func() {
		if err := g.keepRenewing(ctx); err != nil {
			cancel(err)
		}
	})
	var forbidden refusals
	for ctx.Err() == nil {
		err := g.readMembers(ctx)
		if err != nil {
			log.G(ctx).WithError(err).Debug("cannot see who shares the nodes")
		}
		if forbidden.recordLast(err) {
			return fmt.Errorf("share nodes: list leases in kube-node-lease: %w", err)
		}
		sleep.For(ctx, lookEvery)
	}
	return context.Cause(ctx)
}

// Leave tells the other members that this process no longer acts for any node. The lease stays until another process removes it. A renewal that is in
// flight at the end of Run may still arrive. The other members then wait until the lease is old.
func (g *Group) Leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveIn)
	defer cancel()
	if err := g.patchLease(ctx, coordinationv1.LeaseSpec{HolderIdentity: ptr.To("")}); err != nil && !apierrors.IsNotFound(err) {
		log.G(ctx).WithError(err).Debug("the lease of this process stays; others take its nodes when it is old")
	}
}

// forbiddenFor is how long requests must be forbidden before that counts, because the API server may be starting, or a role may be about to be
// replaced.
const forbiddenFor = 15 * time.Second

// refusals tracks for how long requests have been forbidden.
type refusals struct{ since time.Time }

// recordLast records the result of the last request, and reports whether requests have been forbidden for too long.
func (r *refusals) recordLast(err error) bool {
	if !apierrors.IsForbidden(err) {
		r.since = time.Time{}
		return false
	}
	if r.since.IsZero() {
		r.since = time.Now()
	}
	return time.Since(r.since) >= forbiddenFor
}

// keepRenewing renews the lease of this process until ctx ends. An error means that the API server forbids it.
// Renewals overlap while the API server is slow.
func (g *Group) keepRenewing(ctx context.Context) error {
	results := make(chan error)
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // before Wait
	waiting := 0
	next := time.NewTimer(overlapAfter)
	defer next.Stop()
	send := func() {
		waiting++
		wg.Go(func() {
			select {
			case results <- g.renewLease(ctx):
			case <-ctx.Done():
			}
		})
		next.Reset(overlapAfter)
	}
	var forbidden refusals
	failed := false
	send()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
			send()
		case err := <-results:
			waiting--
			pause := renewEvery
			switch {
			case forbidden.recordLast(err):
				return fmt.Errorf("share nodes: write the lease %s in kube-node-lease: %w", g.member, err)
			case err == nil:
				failed = false
			default:
				pause = retryEvery
				if !failed && ctx.Err() == nil {
					log.G(ctx).WithError(err).Warn("the lease by which this process shares nodes is not renewed, trying again")
				}
				failed = true
			}
			if waiting == 0 {
				next.Reset(pause)
			}
		}
	}
}

// renewLease renews the lease of this process.
func (g *Group) renewLease(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, maxAge) // a later response would be useless
	defer cancel()
	sent := time.Now()
	l := g.renewedLease()
	err := g.patchLease(ctx, l.Spec)
	if apierrors.IsNotFound(err) {
		_, err = g.leases.Create(ctx, l, metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// Before this response, other members may have treated this process as gone.
	if now := time.Now(); g.sent.IsZero() || lease.Elapsed(g.sent, now) >= maxAge {
		g.since = now
	}
	if sent.After(g.sent) { // the response to a later renewal may have arrived earlier
		g.sent = sent
	}
	return nil
}

func (g *Group) groupLabels() labels.Set { return labels.Set{GroupLabel: g.name} }

// patchLease changes the lease of this process without a resource version, because another request may be in flight.
func (g *Group) patchLease(ctx context.Context, spec coordinationv1.LeaseSpec) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": g.groupLabels()}, "spec": spec})
	if err != nil {
		return err
	}
	_, err = g.leases.Patch(ctx, g.member, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// renewedLease returns the renewed lease.
func (g *Group) renewedLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: g.member, Labels: g.groupLabels()},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       ptr.To(g.host),
			LeaseDurationSeconds: ptr.To(int32(goneAfter / time.Second)),
			RenewTime:            ptr.To(metav1.NowMicro()),
		},
	}
}

// readMembers reads the members of the group, and removes leases that are long outdated.
func (g *Group) readMembers(parent context.Context) error {
	ctx, cancel := context.WithTimeout(parent, requestTimeout)
	defer cancel()
	list, err := g.leases.List(ctx, metav1.ListOptions{LabelSelector: g.groupLabels().String()})
	if err != nil {
		return err
	}
	for name, version := range g.takeMembers(list.Items, time.Now()) {
		unchanged := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}}
		if err := g.leases.Delete(ctx, name, unchanged); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			log.G(ctx).WithError(err).Debug("the lease of a process that has ended stays")
		}
	}
	return nil
}

// takeMembers records a list, signals changes of the membership, and returns the leases to remove.
func (g *Group) takeMembers(leases []coordinationv1.Lease, now time.Time) (old map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.view.recordLeases(leases, now)
	live := g.view.liveMembers(now)
	if !slices.Contains(live, g.member) { // the member has not joined yet, or its lease was deleted
		return nil
	}
	if !slices.Equal(live, g.live) {
		g.live = live
		select {
		case g.Changed <- struct{}{}:
		default:
		}
	}
	return g.view.oldLeases(now)
}
