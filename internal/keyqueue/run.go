// SPDX-License-Identifier: Apache-2.0

package keyqueue

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// run is one run of a queue, from Start to the end of its work.
type run struct {
	ctx     context.Context // of the work
	work    Work
	pool    *pool
	limit   *limit         // nil: no limit besides the places
	workers sync.WaitGroup // Add is called with the queue's mu held, while the queue has this run
	timer   *time.Timer    // triggers startReady when the first item is due

	free int       // guarded by the queue's mu: free places
	at   time.Time // guarded by the queue's mu: the time for which the timer is set
}

// Run processes keys until ctx ends, with up to workers keys at a time, and returns after all work has ended. Work that called Yield does not count.
func (q *Queue) Run(ctx context.Context, workers int, work Work) {
	wait := q.Start(ctx, workers, work)
	<-ctx.Done()
	wait()
}

// Start is Run for callers that wait for several queues. It returns at once. Call wait after ctx has ended: it
// returns after all work. An idle queue has no goroutine. Goroutines come from the pool of ctx, if there is a
// pool (see Share).
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
	r.timer = time.AfterFunc(time.Hour, q.startReady)
	q.startReadyLocked()
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

// startReady starts the work that is ready.
func (q *Queue) startReady() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.startReadyLocked()
}

// startReadyLocked assigns a worker to each ready item while places are free, and sets the timer for the other items. The caller holds mu.
func (q *Queue) startReadyLocked() {
	r := q.run
	if r == nil || r.ctx.Err() != nil {
		return
	}
	now := time.Now()
	q.takeDue(now)
	for len(q.ready) > 0 && r.free > 0 && r.limit.takeShare(q) {
		it := q.popReady()
		r.free--
		r.workers.Add(1)
		r.pool.runTask(func() { q.workItems(r, it) })
	}
	if len(q.later) > 0 && !q.later[0].due.Equal(r.at) {
		r.at = q.later[0].due
		r.timer.Reset(r.at.Sub(now))
	}
}

// takeDue moves items whose time has come to the ready list. The caller holds mu.
func (q *Queue) takeDue(now time.Time) {
	for len(q.later) > 0 && !q.later[0].due.After(now) {
		it := heap.Pop(&q.later).(*item)
		it.state, it.since = ready, now
		q.ready = append(q.ready, it)
	}
}

// popReady takes the item that has been ready longest. The caller holds mu.
func (q *Queue) popReady() *item {
	it := q.ready[0]
	q.ready[0] = nil
	q.ready = q.ready[1:]
	it.state, it.again, it.urgent, it.againAt = working, false, false, time.Time{}
	return it
}

// workItems processes an item and then the next ready items, in one place. After a Yield, it ends, because another worker has its place.
func (q *Queue) workItems(r *run, it *item) {
	defer r.workers.Done()
	for it != nil {
		// Each item has its own place: a late Yield must not count for the next item.
		p := &place{free: func() { q.giveBack(r) }}
		part := r.limit.holdPart()
		q.workItem(context.WithValue(r.ctx, placeKey{}, p), it, r.work)
		whole, kept := part.endPart(), p.keepPlace()
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
			r.limit.giveShare()
		}
	}
}

// next takes a ready item for a worker that continues in its place. It returns nil if there is none, or if other
// queues wait for the share.
func (q *Queue) next(r *run) *item {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.run != r || r.ctx.Err() != nil || r.limit.hasWaiting() {
		return nil
	}
	q.takeDue(time.Now())
	if len(q.ready) == 0 {
		return nil
	}
	return q.popReady()
}

// giveBack frees a place, and starts the next ready item.
func (q *Queue) giveBack(r *run) {
	q.mu.Lock()
	r.free++
	q.mu.Unlock()
	q.startReady()
}

func (q *Queue) workItem(ctx context.Context, it *item, work Work) {
	if q.beginAnew(it) {
		q.reportSuccess(it.key)
	}
	class, err := work(ctx, it.key)
	if ctx.Err() != nil {
		err = nil // the end of Run is not a failure of the key
	}
	var delay time.Duration
	var again bool
	if err != nil {
		delay, again = q.policies[class].Failed(ctx, it.key, it.tries+1, it.firstAdded, err)
	}
	if !again {
		q.reportSuccess(it.key)
	}

	q.mu.Lock()
	defer q.mu.Unlock()
	it.class = class
	if again {
		it.tries++
		q.retryItem(it, delay)
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

// beginAnew reports whether the earlier failures of an item do not count, and resets that flag.
func (q *Queue) beginAnew(it *item) (anew bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	anew, it.anew = it.anew, false
	if anew {
		it.tries, it.firstAdded = 0, time.Now()
	}
	return anew
}

func (q *Queue) reportSuccess(key string) {
	for _, p := range q.policies {
		p.Succeeded(key)
	}
}

// retryItem makes a failed item wait, unless it must run first, or was added again.
func (q *Queue) retryItem(it *item, delay time.Duration) {
	if it.urgent {
		q.makeReady(it)
		return
	}
	if delay < 0 { // ahead of the others, as ShouldRetryFunc promises
		it.state, it.since = ready, time.Now()
		q.ready = append([]*item{it}, q.ready...)
		q.startReadyLocked()
		return
	}
	q.wait(it, time.Now().Add(delay), true)
}

type placeKey struct{}

// place is a worker's place while it works on one item. It can be given up once.
type place struct {
	mu   sync.Mutex
	free func() // guarded by mu; nil: the item no longer has the place
}

func (p *place) yieldPlace() {
	if free := p.takeFree(); free != nil {
		free()
	}
}

// keepPlace prevents a later Yield of the item, and reports whether the worker still has the place.
func (p *place) keepPlace() bool { return p.takeFree() != nil }

func (p *place) takeFree() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.free
	p.free = nil
	return free
}

// Yield gives up the place of the work that ctx belongs to, so that a worker can start another key while this
// key hangs. No other worker takes this key. Yield does nothing for other contexts.
func Yield(ctx context.Context) {
	if p, ok := ctx.Value(placeKey{}).(*place); ok {
		p.yieldPlace()
	}
}
