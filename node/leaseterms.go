// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
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
	// livePage is how many pods one request for all of them returns: they may be large.
	livePage = 200
	// lookAgain is after how long a pod is looked at again whose cache is behind.
	lookAgain = time.Second
)

// terms begins each term of the fence: it reads the pods past the cache, and
// then has everything looked at anew.
func (c *PodController) terms(ctx context.Context) {
	retry := retryPause{first: termFirstRetry, max: termMaxRetry}
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.fence.Changed:
		}
		for ctx.Err() == nil {
			term, anew, begins := c.fence.Pending()
			if !begins {
				break
			}
			if err := c.beginTerm(ctx, anew); err != nil {
				log.G(ctx).WithError(err).Debug("pods wait until they can be read past the cache")
				sleep.For(ctx, retry.next())
				continue
			}
			retry.reset()
			c.fence.Begin(term)
			c.lookAtAll(ctx)
		}
		c.deferred.release()
	}
}

// beginTerm forgets what another process may have changed since, and finds out
// for which pods the cache is behind.
func (c *PodController) beginTerm(ctx context.Context, anew bool) error {
	if anew {
		for key, uid := range c.states.forgetAll() {
			c.forgetObjects(key, uid)
		}
		c.noteEarlier(ctx)
		c.orphans.forgetAll(ctx, time.Now())
		c.lost.forgetAll(ctx, time.Now())
	}
	cached, err := c.pods.List(labels.Everything()) // first: what comes meanwhile would seem to be gone
	if err != nil {
		return fmt.Errorf("list the cached pods: %w", err)
	}
	live, err := c.liveVersions(ctx)
	if err != nil {
		return err
	}
	behind := map[string]podGap{}
	for _, pod := range cached {
		gap := podGap{cached: pod.UID, live: live[keyOf(pod)]}
		ours := c.nodeName == "" || pod.Spec.NodeName == c.nodeName // else it was not asked for
		if ours && c.wanted(ctx, pod) && !gap.closed(pod) {
			behind[keyOf(pod)] = gap
		}
	}
	c.behind.set(behind)
	return nil
}

// liveVersions reads from the API server itself which pods the node has.
func (c *PodController) liveVersions(ctx context.Context) (map[string]podVersion, error) {
	live := map[string]podVersion{}
	opts := metav1.ListOptions{Limit: livePage}
	if c.nodeName != "" {
		opts.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", c.nodeName).String()
	}
	for {
		page, err := timed(ctx, podRequestTimeout, func(ctx context.Context) (*corev1.PodList, error) {
			return c.client.Pods(metav1.NamespaceAll).List(ctx, opts)
		})
		if err != nil {
			return nil, fmt.Errorf("list the pods of the node: %w", err)
		}
		for i := range page.Items {
			live[keyOf(&page.Items[i])] = podVersion{page.Items[i].UID, page.Items[i].ResourceVersion}
		}
		if page.Continue == "" {
			return live, nil
		}
		opts.Continue = page.Continue
	}
}

// lookAtAll marks every pod, and compares both sides.
func (c *PodController) lookAtAll(ctx context.Context) {
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		log.G(ctx).WithError(err).Warn("cannot list the cached pods")
	}
	for _, pod := range pods {
		if c.wanted(ctx, pod) {
			c.syncLane.AddNow(keyOf(pod))
			c.statusLane.AddNow(keyOf(pod))
		}
	}
	c.relistNow()
}

// fenced is work that waits outside its lane while the fence is closed, which is
// no sync error of the pod.
func (c *PodController) fenced(lane *keyqueue.Queue, work keyqueue.Work) keyqueue.Work {
	if c.fence == nil {
		return work
	}
	return func(ctx context.Context, key string) (class int, err error) {
		entered, err := c.fence.Enter(ctx)
		if err == nil && c.behind.has(key, c.pod(ctx, key)) {
			lane.AddAfter(key, lookAgain)
			return 0, nil
		}
		if errors.Is(err, lease.ErrFenced) && lane == c.syncLane && c.fence.Silent() && c.overdue(ctx, key) {
			entered, err = lease.InSilence(ctx), nil
		}
		if err == nil {
			class, err = work(entered, key)
		}
		if !errors.Is(err, lease.ErrFenced) {
			return class, err
		}
		c.deferred.add(lane, key)
		if _, err := c.fence.Enter(ctx); err == nil {
			c.deferred.release() // it was opened meanwhile
		} else if lane == c.syncLane {
			c.awaitDeadline(ctx, key)
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

func (p *deferredKeys) release() {
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

// podVersion is a pod in the API server; the zero value is none.
type podVersion struct {
	uid     types.UID
	version string
}

// podGap says that the cache was behind for a pod when a term began.
type podGap struct {
	cached types.UID
	live   podVersion
}

// closed reports whether the cached pod is at least what was read past the cache.
func (g podGap) closed(pod *corev1.Pod) bool {
	switch {
	case pod == nil:
		return true
	case pod.UID != g.live.uid:
		return pod.UID != g.cached // else it is gone, or another has its name
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

// has reports whether the cache is still behind, given what it holds.
func (g *podGaps) has(key string, pod *corev1.Pod) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	gap, known := g.m[key]
	if known && gap.closed(pod) {
		delete(g.m, key)
		return false
	}
	return known
}

// forgetAll drops all states and returns the UIDs of their pods: what is known of
// a pod may no longer be so when another process has worked on it.
func (s *podStates) forgetAll() map[string]types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	forgotten := make(map[string]types.UID, len(s.m))
	for key, st := range s.m {
		forgotten[key] = st.sent.UID
	}
	s.m = map[string]*podState{}
	return forgotten
}
