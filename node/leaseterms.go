// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/virtual-kubelet/virtual-kubelet/internal/keyqueue"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/internal/sleep"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	termFirstRetry = 200 * time.Millisecond
	termMaxRetry   = 2 * time.Second
)

// leaseTerms allows work on pods while this process holds the lease. Each term begins with a check for changes by another process.
type leaseTerms struct {
	*podCore
	tracker     *podTracker
	quarantines *quarantines
	deadlines   *activeDeadlines
	behind      podGaps
	deferred    deferredKeys
}

// beginTerms begins each pending term of the fence. It reads the pods without the cache, and then adds all pods to the lanes.
func (t *leaseTerms) beginTerms(ctx context.Context) {
	retry := retryPause{first: termFirstRetry, max: termMaxRetry}
	for ctx.Err() == nil {
		term, anew, begins := t.fence.Pending()
		if !begins {
			break
		}
		if err := t.beginTerm(ctx, anew); err != nil {
			log.G(ctx).WithError(err).Debug("pods wait until they can be read past the cache")
			sleep.For(ctx, retry.next())
			continue
		}
		retry.reset()
		t.fence.Begin(term)
		t.lookAtAll(ctx)
	}
	t.deferred.releaseAll()
}

// beginTerm forgets all states, because another process may have changed the pods, and finds the pods for which
// the cache is behind.
func (t *leaseTerms) beginTerm(ctx context.Context, anew bool) error {
	if anew {
		for key, uid := range t.states.forgetAll() {
			t.tracker.forgetObjects(key, uid)
		}
		t.given.forgetAll()
		t.beginActing(ctx)
		t.quarantines.forgetAll(ctx)
	}
	cached := t.all(ctx) // first, because a pod that arrives between the reads would seem to be gone
	live, err := t.liveVersions(ctx)
	if err != nil {
		return err
	}
	behind := map[string]podGap{}
	for _, pod := range cached {
		gap := podGap{cached: pod.UID, live: live[keyOf(pod)]}
		ours := t.nodeName == "" || pod.Spec.NodeName == t.nodeName // otherwise the live read does not include it
		if ours && !gap.isClosed(pod) {
			behind[keyOf(pod)] = gap
		}
	}
	t.behind.set(behind)
	return nil
}

// beginActing records which pods exist when this process begins to act for the node.
func (t *leaseTerms) beginActing(ctx context.Context) {
	t.noteEarlier(ctx)
	t.tracker.admission.reserveAll(ctx)
}

// lookAtAll adds every pod to the lanes, and requests a comparison of both sides.
func (t *leaseTerms) lookAtAll(ctx context.Context) {
	for _, pod := range t.all(ctx) {
		t.syncLane.AddNow(keyOf(pod))
		t.statusLane.AddNow(keyOf(pod))
	}
	t.relistNow()
}

// fencedWork returns work that waits outside its lane while the fence is closed. Waiting is not a sync error of the pod.
func (t *leaseTerms) fencedWork(lane *keyqueue.Queue, work keyqueue.Work) keyqueue.Work {
	if t.fence == nil {
		return work
	}
	return func(ctx context.Context, key string) (class int, err error) {
		entered, err := t.fence.Enter(ctx)
		if err == nil && t.behind.has(key, t.pod(ctx, key)) {
			lane.AddAfter(key, lookAgain)
			return 0, nil
		}
		fenced := errors.Is(err, lease.ErrFenced) && lane == t.syncLane
		if fenced && t.fence.Silent() && t.deadlines.isOverdue(ctx, key) {
			entered, err = lease.InSilence(ctx), nil
		}
		if err == nil {
			class, err = work(entered, key)
		}
		if !errors.Is(err, lease.ErrFenced) {
			return class, err
		}
		t.deferred.add(lane, key)
		if _, err := t.fence.Enter(ctx); err == nil {
			t.deferred.releaseAll() // the fence was opened in the meantime
		} else if lane == t.syncLane {
			t.deadlines.awaitDeadline(ctx, key)
		}
		return class, nil
	}
}

// deferredKeys holds the keys that wait for the fence.
type deferredKeys struct {
	mu   sync.Mutex
	keys map[*keyqueue.Queue]map[string]bool // guarded by mu
}

func (p *deferredKeys) add(lane *keyqueue.Queue, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys == nil {
		p.keys = map[*keyqueue.Queue]map[string]bool{}
	}
	if p.keys[lane] == nil {
		p.keys[lane] = map[string]bool{}
	}
	p.keys[lane][key] = true
}

func (p *deferredKeys) releaseAll() {
	p.mu.Lock()
	lanes := p.keys
	p.keys = nil
	p.mu.Unlock()
	for lane, keys := range lanes {
		for key := range keys {
			lane.AddNow(key)
		}
	}
}

// podGap records that the cache was behind for a pod when a term began.
type podGap struct {
	cached types.UID
	live   podVersion
}

// isClosed reports whether the cached pod is at least as new as the pod from the live read.
func (g podGap) isClosed(pod *corev1.Pod) bool {
	switch {
	case pod == nil:
		return true
	case pod.UID != g.live.uid:
		return pod.UID != g.cached // otherwise the pod is gone, or has been replaced
	}
	order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, g.live.version)
	return err != nil || order >= 0
}

// podGaps are the pods for which the cache is behind.
type podGaps struct {
	mu sync.Mutex
	m  map[string]podGap // guarded by mu
}

func (g *podGaps) set(m map[string]podGap) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.m = m
}

// has reports whether the cache is still behind, given the pod that it contains.
func (g *podGaps) has(key string, pod *corev1.Pod) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	gap, known := g.m[key]
	if known && gap.isClosed(pod) {
		delete(g.m, key)
		return false
	}
	return known
}
