// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	listEvery = 10 * time.Minute // in case an event got lost
	lookEvery = time.Second      // for what is due, and what failed
	together  = 8                // requests about pods at the same time, and as many signals
)

// RunInBackground implements node.BackgroundRunner.
func (p *provider) RunInBackground(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { p.followNodes(ctx) })
	running.Go(func() { p.follow(ctx) })
	running.Go(func() { p.listAgain(ctx) })
	p.work(ctx)
	running.Wait()
	p.client.http.CloseIdleConnections()
	return nil
}

// follow follows the event stream, and lists all pods each time it begins: what happened before is in the list, and what happens after
// it in the stream.
func (p *provider) follow(ctx context.Context) {
	pause := newPause()
	for ctx.Err() == nil {
		opened := time.Now()
		begun := func() error {
			l, err := p.client.list(ctx, p.store.owner.prefix())
			if err != nil {
				return err
			}
			p.store.merge(l) // events come after it
			p.setDown(nil)
			p.syncedOnce.Do(func() { close(p.synced) })
			return nil
		}
		err := p.client.events(ctx, begun, func(e event) {
			if p.store.event(e) {
				p.listSoon()
			}
		})
		p.setDown(err)
		if ctx.Err() == nil {
			log.G(ctx).WithError(err).Warn("Changes of pods at Nomad are not seen")
		}
		if time.Since(opened) > streamLasts { // one that is cut at once is no success
			pause.reset()
		}
		pause.wait(ctx)
	}
}

func (p *provider) list(ctx context.Context) error {
	l, err := p.client.list(ctx, p.store.owner.prefix())
	p.mu.Lock()
	p.listError = err
	p.mu.Unlock()
	if err != nil {
		p.listSoon()
		return err
	}
	if p.store.merge(l) {
		p.listSoon() // their events until now were for nobody
	}
	return nil
}

// listSoon asks for a list.
func (p *provider) listSoon() {
	select {
	case p.relist <- struct{}{}:
	default:
	}
}

// listAgain lists when that is asked for, and from time to time, and then removes Variables of jobs that are gone.
func (p *provider) listAgain(ctx context.Context) {
	ticker := time.NewTicker(listEvery)
	defer ticker.Stop()
	if p.waits(ctx, p.synced) {
		p.sweep(ctx)
	}
	pause := newPause()
	for {
		var err error
		select {
		case <-p.relist:
			err = p.list(ctx)
		case <-ticker.C:
			if err = p.list(ctx); err == nil {
				p.sweep(ctx)
			}
		case <-ctx.Done():
			return
		}
		if err == nil {
			pause.reset()
			continue
		}
		if ctx.Err() == nil {
			log.G(ctx).WithError(err).Warn("The jobs of Nomad cannot be listed")
		}
		pause.wait(ctx)
	}
}

func (p *provider) waits(ctx context.Context, ready <-chan struct{}) bool {
	select {
	case <-ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// sweep removes Variables whose job was never submitted, or that were left when the node ended in the middle of a removal: those that it saw
// the last time too and that nobody wrote since, as another process of the node may be about to submit the job.
func (p *provider) sweep(ctx context.Context) {
	prefix := "nomad/jobs/" + p.store.owner.prefix()
	all, err := p.client.variables(ctx, prefix)
	if err != nil {
		log.G(ctx).WithError(err).Warn("Variables of Nomad cannot be listed")
		return
	}
	unused := map[string]uint64{}
	for _, v := range all {
		job, _, _ := strings.Cut(strings.TrimPrefix(v.Path, "nomad/jobs/"), "/")
		p.store.mu.Lock()
		used := p.store.byJob[job] != nil
		p.store.mu.Unlock()
		if used {
			continue
		}
		if unused[v.Path] = v.ModifyIndex; p.unused[v.Path] != v.ModifyIndex {
			continue
		}
		if err := p.client.removeVariableOf(ctx, v.Path, v.ModifyIndex); err != nil {
			log.G(ctx).WithError(err).Warn("A Variable of Nomad without a job cannot be removed")
		}
	}
	p.unused = unused
}

// work reports what changed, and does what is due, until ctx ends. It alone reports, so reports are in order.
func (p *provider) work(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var running sync.WaitGroup
	do := func(room chan struct{}, f func()) {
		if f == nil {
			return
		}
		running.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			f()
		})
	}
	requests, signals := make(chan struct{}, together), make(chan struct{}, together)
	for ctx.Err() == nil {
		select {
		case <-p.store.wake:
		case <-ticker.C:
			p.lookAgain()
		case <-ctx.Done():
		}
		p.store.mu.Lock()
		changed := p.store.dirty
		p.store.dirty = map[types.UID]bool{}
		p.store.mu.Unlock()
		for uid := range changed {
			if pod := p.news(uid); pod != nil {
				p.notify(pod)
			}
			now := time.Now()
			do(requests, p.due(ctx, uid, now))
			do(signals, p.kill(ctx, uid, now))
		}
	}
	running.Wait()
}

// lookAgain marks the pods about which something may have become due without a change at Nomad.
func (p *provider) lookAgain() {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	for uid, e := range p.store.pods {
		if e.stopping || len(e.failed) > 0 || !e.again.IsZero() || !p.lostAt(e).IsZero() {
			p.store.dirty[uid] = true
		}
	}
}

// news is the pod if its status is not what was reported; nil if it is.
func (p *provider) news(uid types.UID) *corev1.Pod {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	e := p.store.pods[uid]
	if e == nil || e.hidden {
		return nil
	}
	pod := p.store.show(e)
	if e.reported != nil && equality.Semantic.DeepEqual(*e.reported, pod.Status) {
		return nil
	}
	e.reported = pod.Status.DeepCopy()
	return pod
}
