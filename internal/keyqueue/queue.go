// SPDX-License-Identifier: Apache-2.0

// Package keyqueue is a delayed, coalescing queue of keys with one worker per key at a time.
//
// The guarantee: work for one key never overlaps. A key that is added during its work is processed again. Failed work is retried according to the
// retry policy. First-time work is not delayed, retries are.
//
// Note: Add does not shorten the delay of a retry, so the watch event of a failure's own status update cannot defeat the backoff. AddNow
// does, and resets the backoff.
package keyqueue

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Work does the work for a key. The class selects the retry policy for an error, and the count of Len.
type Work func(ctx context.Context, key string) (class int, err error)

// Policy decides when failed work is retried.
type Policy interface {
	// Failed returns the delay until the retry after a failure. If again is false, the key is dropped until it is added again.
	Failed(ctx context.Context, key string, tries int, firstAdded time.Time, err error) (delay time.Duration, again bool)
	// Succeeded means that the work of the key succeeded or was given up, or that its earlier failures no longer
	// count.
	Succeeded(key string)
}

// Queue is a queue of keys. Make one with New.
type Queue struct {
	policies []Policy
	shared   bool // set before Start

	mu    sync.Mutex
	items map[string]*item // guarded by mu
	ready []*item          // guarded by mu; items in state ready, oldest first
	later delayed          // guarded by mu; items in state waiting, soonest first
	run   *run             // guarded by mu; nil without a worker
}

type state int

const (
	ready   state = iota // in Queue.ready
	waiting              // in Queue.later
	working              // with a worker
)

type item struct {
	key   string
	class int
	state state

	since      time.Time // when ready: since when
	due        time.Time // when waiting: until when
	pos        int       // when waiting: index in Queue.later
	isRetry    bool      // when waiting: after a failure
	tries      int       // failures since the last success
	firstAdded time.Time // since the last success

	again   bool      // when working: the key was added in the meantime
	urgent  bool      // when working: a retry must not be delayed, after AddNow or Kick
	anew    bool      // failures before the next attempt do not count, after AddNow
	againAt time.Time // when working: the time of a later AddAfter
}

// New returns a queue with one retry policy per class of work.
func New(policies ...Policy) *Queue {
	return &Queue{policies: policies, items: map[string]*item{}}
}

// Shared makes the work of the queue count towards the limit of Share, and returns the queue. Call it before the start.
func (q *Queue) Shared() *Queue {
	q.shared = true
	return q
}

// Add requests work for the key. A key that waits for a retry keeps waiting.
func (q *Queue) Add(key string) { q.add(key, 0, false) }

// AddNow is Add for events after which an immediate retry makes sense. The key no longer waits, and its earlier failures do not count.
func (q *Queue) AddNow(key string) { q.add(key, 0, true) }

// AddAfter requests work for the key after d. The earliest of several such times counts.
func (q *Queue) AddAfter(key string, d time.Duration) { q.add(key, d, false) }

func (q *Queue) add(key string, d time.Duration, urgent bool) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	it := q.items[key]
	if it != nil && urgent {
		it.anew = true
	}
	switch {
	case it == nil:
		it = &item{key: key, firstAdded: now}
		q.items[key] = it
		if d > 0 {
			q.wait(it, now.Add(d), false)
		} else {
			q.makeReady(it)
		}
	case it.state == ready:
	case it.state == working && d > 0:
		if at := now.Add(d); it.againAt.IsZero() || at.Before(it.againAt) {
			it.againAt = at
		}
	case it.state == working:
		it.again, it.urgent = true, it.urgent || urgent
	case it.isRetry && !urgent: // keeps waiting
	case d > 0:
		if at := now.Add(d); at.Before(it.due) {
			it.due = at
			heap.Fix(&q.later, it.pos)
			q.startReadyLocked()
		}
	default:
		heap.Remove(&q.later, it.pos)
		q.makeReady(it)
	}
}

// Kick ends the wait of every key that waits for a retry. Call it when the cause of their failures is gone. Work in progress may have started before
// that, so if it fails, its retry does not wait either.
func (q *Queue) Kick() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range q.items {
		it.urgent = it.urgent || it.state == working
	}
	for _, it := range append(delayed(nil), q.later...) {
		if it.isRetry && it.state == waiting { // otherwise, its time has come in the meantime
			heap.Remove(&q.later, it.pos)
			q.makeReady(it)
		}
	}
}

// Len returns how many keys of the class wait, for a worker or for a time, and how many are being processed.
func (q *Queue) Len(class int) (unprocessed, processing int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range q.items {
		switch {
		case it.class != class:
		case it.state == working:
			processing++
		default:
			unprocessed++
		}
	}
	return unprocessed, processing
}

// Backlog returns how many keys wait for a worker, and how long the oldest of them has waited.
func (q *Queue) Backlog() (n int, oldest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range q.ready {
		oldest = max(oldest, time.Since(it.since))
	}
	return len(q.ready), oldest
}

// Retrying returns how many keys wait for a retry.
func (q *Queue) Retrying() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range q.later {
		if it.isRetry {
			n++
		}
	}
	return n
}

// Retry returns the number of failures of the key since its last success, and the time of its next retry. The time is zero if the key does not wait
// for a retry.
func (q *Queue) Retry(key string) (tries int, next time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it := q.items[key]
	if it == nil {
		return 0, time.Time{}
	}
	if it.state == waiting && it.isRetry {
		next = it.due
	}
	return it.tries, next
}

func (q *Queue) makeReady(it *item) {
	it.state, it.since = ready, time.Now()
	q.ready = append(q.ready, it)
	q.startReadyLocked()
}

func (q *Queue) wait(it *item, due time.Time, isRetry bool) {
	it.state, it.due, it.isRetry = waiting, due, isRetry
	heap.Push(&q.later, it)
	q.startReadyLocked()
}
