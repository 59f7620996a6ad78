// SPDX-License-Identifier: Apache-2.0

package keyqueue

import (
	"context"
	"slices"
	"sync"
	"time"
)

// workerIdle is the time that an idle goroutine waits for more work. A new goroutine has to grow its stack, and an idle goroutine uses memory.
const workerIdle = 5 * time.Second

// pool keeps goroutines for reuse.
type pool struct {
	work    chan func() // has a receiver while a goroutine is idle
	done    chan struct{}
	running sync.WaitGroup
}

func newPool() *pool { return &pool{work: make(chan func()), done: make(chan struct{})} }

// runTask runs f in an idle goroutine, or in a new goroutine.
func (p *pool) runTask(f func()) {
	select {
	case p.work <- f:
	default:
		p.running.Go(func() { p.run(f) })
	}
}

func (p *pool) run(f func()) {
	f()
	idle := time.NewTimer(workerIdle)
	defer idle.Stop()
	for {
		select {
		case f = <-p.work:
		case <-idle.C:
			return
		case <-p.done:
			return
		}
		f()
		idle.Reset(workerIdle)
	}
}

// close ends the goroutines. No call of runTask may be in progress or follow.
func (p *pool) close() {
	close(p.done)
	p.running.Wait()
}

// Do runs f in a goroutine of the pool of ctx, if there is a pool (see Share), and returns after f. A caller that mostly waits, like the loops of a
// thousand nodes, keeps a small stack, because a goroutine of the pool has the stack of the request.
func Do(ctx context.Context, f func()) {
	p := poolOf(ctx)
	if p == nil {
		f()
		return
	}
	done := make(chan struct{})
	p.runTask(func() {
		defer close(done)
		f()
	})
	<-done
}

// limit bounds the total work of several queues. A nil limit means no limit.
type limit struct {
	mu      sync.Mutex
	free    int      // guarded by mu
	waiting []*Queue // guarded by mu: queues with more work to begin
}

// takeShare takes a share for the queue, or records that the queue waits for a share.
func (l *limit) takeShare(q *Queue) bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free > 0 {
		l.free--
		return true
	}
	if !slices.Contains(l.waiting, q) {
		l.waiting = append(l.waiting, q)
	}
	return false
}

// hasWaiting reports whether a queue waits for a share.
func (l *limit) hasWaiting() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) > 0
}

// giveShare returns a share, and starts the waiting queues. The caller holds no mutex of a queue.
func (l *limit) giveShare() {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.free++
	l.mu.Unlock()
	for q := l.next(); q != nil; q = l.next() {
		q.startReady()
	}
}

// longestPart is the maximum time for which work counts towards the limit, because a queue that hangs must not block the other queues for ever.
const longestPart = 2 * time.Second

// part is the share of one item in a limit.
type part struct {
	timer *time.Timer // nil: there is no limit
}

// holdPart returns the share of a slow item after longestPart.
func (l *limit) holdPart() part {
	if l == nil {
		return part{}
	}
	return part{time.AfterFunc(longestPart, l.giveShare)}
}

// endPart reports whether the part was still held. The caller then gives it back.
func (p part) endPart() (whole bool) { return p.timer == nil || p.timer.Stop() }

// next returns the queue that has waited longest, or nil if no queue waits or no share is free.
func (l *limit) next() *Queue {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free == 0 || len(l.waiting) == 0 {
		return nil
	}
	q := l.waiting[0]
	l.waiting = l.waiting[1:]
	return q
}

type shareKey struct{}

// share is the pool and the limit of several queues.
type share struct {
	pool  *pool
	limit *limit
}

// Share returns a context for the queues of many nodes. They use the same goroutines, and the Shared queues together work on at most most items at a
// time. Call end after all queues have ended.
func Share(ctx context.Context, most int) (shared context.Context, end func()) {
	s := &share{newPool(), &limit{free: most}}
	return context.WithValue(ctx, shareKey{}, s), s.pool.close
}

func poolOf(ctx context.Context) *pool {
	if s, ok := ctx.Value(shareKey{}).(*share); ok {
		return s.pool
	}
	return nil
}

func limitOf(ctx context.Context) *limit {
	if s, ok := ctx.Value(shareKey{}).(*share); ok {
		return s.limit
	}
	return nil
}
