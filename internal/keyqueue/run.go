// SPDX-License-Identifier: Apache-2.0

package keyqueue

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// workerIdle is how long a worker waits for more work before it ends. A new one costs
// the growth of its stack; one that waits costs its memory, in each of many nodes.
const workerIdle = 5 * time.Second

// Run works on keys, at most workers at a time, until ctx ends, and returns
// when all work has ended. Work that has yielded its place does not count.
func (q *Queue) Run(ctx context.Context, workers int, work Work) {
	var wg sync.WaitGroup
	defer wg.Wait()
	places := make(chan struct{}, workers)
	items := make(chan *item) // has a receiver while a worker is idle
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		it := q.next(ctx, timer)
		if it == nil {
			return
		}
		select {
		case items <- it: // to a worker that is idle
		default:
			wg.Go(func() { q.worker(ctx, it, items, places, work) })
		}
	}
}

// worker works on it, then on whatever is ready, in one place; when nothing is, it gives the
// place back and waits for a while. After a Yield it ends, for its place is another's.
func (q *Queue) worker(ctx context.Context, it *item, items <-chan *item, places <-chan struct{}, work Work) {
	idle := time.NewTimer(workerIdle)
	defer idle.Stop()
	for {
		for it != nil {
			// One of its own for each item: a Yield that comes late must not count for the next.
			p := &place{free: func() { <-places }}
			q.process(context.WithValue(ctx, placeKey{}, p), it, work)
			if !p.keep() {
				return
			}
			if it = nil; ctx.Err() == nil {
				it, _ = q.take(time.Now())
			}
		}
		<-places
		idle.Reset(workerIdle)
		select {
		case it = <-items:
		case <-idle.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// next waits for a ready item and takes it; nil means that ctx ended.
func (q *Queue) next(ctx context.Context, timer *time.Timer) *item {
	for ctx.Err() == nil {
		it, pause := q.take(time.Now())
		if it != nil {
			return it
		}
		timer.Reset(pause)
		select {
		case <-q.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// take returns a ready item, or how long to pause until one may be.
func (q *Queue) take(now time.Time) (*item, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.later) > 0 && !q.later[0].due.After(now) {
		it := heap.Pop(&q.later).(*item)
		it.state = ready
		q.ready = append(q.ready, it)
	}
	if len(q.ready) > 0 {
		it := q.ready[0]
		q.ready[0] = nil
		q.ready = q.ready[1:]
		it.state, it.again, it.urgent, it.againAt = working, false, false, time.Time{}
		return it, 0
	}
	if len(q.later) > 0 {
		return nil, q.later[0].due.Sub(now)
	}
	return nil, time.Hour
}

func (q *Queue) process(ctx context.Context, it *item, work Work) {
	if q.begin(it) {
		q.succeeded(it.key)
	}
	class, err := work(ctx, it.key)
	if ctx.Err() != nil {
		err = nil // the end of Run is no failure of the key
	}
	var delay time.Duration
	var again bool
	if err != nil {
		delay, again = q.policies[class].Failed(ctx, it.key, it.tries+1, it.firstAdded, err)
	}
	if !again {
		q.succeeded(it.key)
	}

	q.mu.Lock()
	defer q.mu.Unlock()
	it.class = class
	if again {
		it.tries++
		q.retry(it, delay)
		return
	}
	it.tries, it.firstAdded = 0, time.Now()
	switch {
	case it.again:
		q.makeReady(it)
	case !it.againAt.IsZero():
		q.wait(it, it.againAt, false)
	default:
		delete(q.items, it.key)
	}
}

// begin reports whether what failed before this try does not count, and forgets it then.
func (q *Queue) begin(it *item) (anew bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	anew, it.anew = it.anew, false
	if anew {
		it.tries, it.firstAdded = 0, time.Now()
	}
	return anew
}

func (q *Queue) succeeded(key string) {
	for _, p := range q.policies {
		p.Succeeded(key)
	}
}

// retry lets a failed item wait, unless it is to come first or news came.
func (q *Queue) retry(it *item, delay time.Duration) {
	if it.urgent {
		q.makeReady(it)
		return
	}
	if delay < 0 { // ahead of the others, as ShouldRetryFunc promises
		it.state = ready
		q.ready = append([]*item{it}, q.ready...)
		q.signal()
		return
	}
	q.wait(it, time.Now().Add(delay), true)
}

type placeKey struct{}

// place is a worker's place while it works on one item. It can be given up once.
type place struct {
	mu   sync.Mutex
	free func() // guarded by mu; nil: no longer this item's
}

func (p *place) yield() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free != nil {
		p.free()
		p.free = nil
	}
}

// keep ends the item's right to give the place up, and reports whether the
// worker still has it.
func (p *place) keep() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.free != nil
	p.free = nil
	return kept
}

// Yield gives up the worker's place of the work that ctx belongs to, so that
// another key can be worked on while this one hangs. The key stays taken. It
// does nothing for another ctx.
func Yield(ctx context.Context) {
	if p, ok := ctx.Value(placeKey{}).(*place); ok {
		p.yield()
	}
}
