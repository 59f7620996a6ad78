// SPDX-License-Identifier: Apache-2.0

package keyqueue

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// run is the time in which keys of a queue are worked on.
type run struct {
	ctx     context.Context // of the work
	work    Work
	pool    *pool
	limit   *limit         // nil: only the places count
	workers sync.WaitGroup // Add is called with the queue's mu held, while the queue has this run
	timer   *time.Timer    // lets the queue be looked at when the first item is due

	free int       // guarded by the queue's mu: places that nobody has
	at   time.Time // guarded by the queue's mu: for when the timer is set
}

// Run works on keys, at most workers at a time, until ctx ends, and returns
// when all work has ended. Work that has yielded its place does not count.
func (q *Queue) Run(ctx context.Context, workers int, work Work) {
	wait := q.Start(ctx, workers, work)
	<-ctx.Done()
	wait()
}

// Start is Run for those who wait for the end of several queues. It returns at once; wait is called when ctx has ended, and returns when all work has. While
// nothing is to be done the queue has no goroutine. Goroutines are those of the pool of ctx, if it has one (see Share).
func (q *Queue) Start(ctx context.Context, workers int, work Work) (wait func()) {
	r := &run{ctx: ctx, work: work, free: workers, pool: poolOf(ctx)}
	if q.shared {
		r.limit = limitOf(ctx)
	}
	own := r.pool == nil
	if own {
		r.pool = newPool()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.run = r
	r.timer = time.AfterFunc(time.Hour, q.look)
	q.begin()
	return func() {
		q.mu.Lock()
		q.run = nil
		q.mu.Unlock()
		r.timer.Stop()
		r.workers.Wait()
		if own {
			r.pool.close()
		}
	}
}

// look begins work that may be begun.
func (q *Queue) look() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.begin()
}

// begin gives each item that is ready a worker, for as long as there are places, and sets the timer for those that are not. mu is held.
func (q *Queue) begin() {
	r := q.run
	if r == nil || r.ctx.Err() != nil {
		return
	}
	now := time.Now()
	q.takeDue(now)
	for len(q.ready) > 0 && r.free > 0 && r.limit.take(q) {
		it := q.pop()
		r.free--
		r.workers.Add(1)
		r.pool.do(func() { q.worker(r, it) })
	}
	if len(q.later) > 0 && !q.later[0].due.Equal(r.at) {
		r.at = q.later[0].due
		r.timer.Reset(r.at.Sub(now))
	}
}

// takeDue makes those ready that have waited for their time. mu is held.
func (q *Queue) takeDue(now time.Time) {
	for len(q.later) > 0 && !q.later[0].due.After(now) {
		it := heap.Pop(&q.later).(*item)
		it.state, it.since = ready, now
		q.ready = append(q.ready, it)
	}
}

// pop takes the item that has been ready for longest. mu is held.
func (q *Queue) pop() *item {
	it := q.ready[0]
	q.ready[0] = nil
	q.ready = q.ready[1:]
	it.state, it.again, it.urgent, it.againAt = working, false, false, time.Time{}
	return it
}

// worker works on it, then on whatever is ready, in one place. After a Yield it ends, for its place is another's.
func (q *Queue) worker(r *run, it *item) {
	defer r.workers.Done()
	for it != nil {
		// One of its own for each item: a Yield that comes late must not count for the next.
		p := &place{free: func() { q.giveBack(r) }}
		part := r.limit.hold()
		q.process(context.WithValue(r.ctx, placeKey{}, p), it, r.work)
		whole, kept := part.end(), p.keep()
		if it = nil; whole && kept {
			it = q.next(r)
		}
		if it != nil {
			continue
		}
		if kept {
			q.giveBack(r)
		}
		if whole {
			r.limit.give()
		}
	}
}

// next takes a ready item for a worker that goes on in its place, nil if there is none, or if other queues wait for what is shared with them.
func (q *Queue) next(r *run) *item {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.run != r || r.ctx.Err() != nil || r.limit.wanted() {
		return nil
	}
	q.takeDue(time.Now())
	if len(q.ready) == 0 {
		return nil
	}
	return q.pop()
}

// giveBack lets another item have a place.
func (q *Queue) giveBack(r *run) {
	q.mu.Lock()
	r.free++
	q.mu.Unlock()
	q.look()
}

func (q *Queue) process(ctx context.Context, it *item, work Work) {
	if q.beginAnew(it) {
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

// beginAnew reports whether what failed before this try does not count, and forgets it then.
func (q *Queue) beginAnew(it *item) (anew bool) {
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
		it.state, it.since = ready, time.Now()
		q.ready = append([]*item{it}, q.ready...)
		q.begin()
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
	if free := p.takeFree(); free != nil {
		free()
	}
}

// keep ends the item's right to give the place up, and reports whether the
// worker still has it.
func (p *place) keep() bool { return p.takeFree() != nil }

func (p *place) takeFree() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.free
	p.free = nil
	return free
}

// Yield gives up the worker's place of the work that ctx belongs to, so that
// another key can be worked on while this one hangs. The key stays taken. It
// does nothing for another ctx.
func Yield(ctx context.Context) {
	if p, ok := ctx.Value(placeKey{}).(*place); ok {
		p.yield()
	}
}
