// SPDX-License-Identifier: Apache-2.0

package keyqueue

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// shareJournal records the work of several queues.
type shareJournal struct {
	mu                   sync.Mutex
	inside, most, others int            // at a time: of the Shared queues, and of the other queue
	done                 map[string]int // by queue
	last                 map[string]time.Time
}

func (j *shareJournal) work(queue string, shared bool, takes time.Duration) Work {
	return func(ctx context.Context, key string) (int, error) {
		j.mu.Lock()
		if shared {
			j.inside++
			j.most = max(j.most, j.inside)
		} else {
			j.others++
		}
		j.mu.Unlock()
		time.Sleep(takes)
		j.mu.Lock()
		defer j.mu.Unlock()
		if shared {
			j.inside--
		}
		j.done[queue]++
		j.last[queue] = time.Now()
		return 0, nil
	}
}

// TestQueuesShareALimit: many Shared queues together never exceed the limit, and none of them waits for ever. A
// queue that is not Shared keeps its own number of places.
func TestQueuesShareALimit(t *testing.T) {
	const queues, keys, most, places = 20, 30, 7, 3
	synctest.Test(t, func(t *testing.T) {
		j := &shareJournal{done: map[string]int{}, last: map[string]time.Time{}}
		ctx, stop := context.WithCancel(t.Context())
		ctx, end := Share(ctx, most)
		var waits []func()
		var all []*Queue
		for i := range queues {
			q := New(always(time.Second)).Shared()
			all = append(all, q)
			waits = append(waits, q.Start(ctx, places, j.work(fmt.Sprint(i), true, time.Second)))
		}
		alone := New(always(time.Second))
		waits = append(waits, alone.Start(ctx, places, j.work("alone", false, time.Second)))
		began := time.Now()
		for k := range keys {
			for _, q := range append(all, alone) {
				q.Add(fmt.Sprint(k))
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if j.most != most {
			t.Errorf("%d at a time, want %d", j.most, most)
		}
		if took := j.last["alone"].Sub(began); took != keys/places*time.Second {
			t.Errorf("the queue that shares no limit took %v for %d keys in %d places", took, keys, places)
		}
		// The queues are always busy and take turns, so even the first queue ends late.
		whole := time.Duration((queues*keys+most-1)/most) * time.Second
		first, last := whole, time.Duration(0)
		for i := range queues {
			if n := j.done[fmt.Sprint(i)]; n != keys {
				t.Errorf("queue %d did %d keys, want %d", i, n, keys)
			}
			took := j.last[fmt.Sprint(i)].Sub(began)
			first, last = min(first, took), max(last, took)
		}
		if last != whole || first < whole*8/10 {
			t.Errorf("the first queue was done after %v and the last after %v, want %v", first, last, whole)
		}
		stop()
		for _, wait := range waits {
			wait()
		}
		end()
	})
}

// TestWorkThatHangsHoldsUpNobodyElse: when hanging work of one queue uses the whole limit, the other queues soon continue.
func TestWorkThatHangsHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ctx, end := Share(ctx, 3)
		hang := make(chan struct{})
		j := &shareJournal{done: map[string]int{}, last: map[string]time.Time{}}
		a, b := New(always(time.Second)).Shared(), New(always(time.Second)).Shared()
		waitA := a.Start(ctx, 5, func(context.Context, string) (int, error) { <-hang; return 0, nil })
		waitB := b.Start(ctx, 5, j.work("b", true, time.Second))
		for i := range 9 {
			a.Add(fmt.Sprint(i))
		}
		synctest.Wait()
		began := time.Now()
		for i := range 30 {
			b.Add(fmt.Sprint(i))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if took := j.last["b"].Sub(began); j.done["b"] != 30 || took > 15*time.Second || j.most > 3 {
			t.Errorf("%d keys were done within %v, %d at a time", j.done["b"], took, j.most)
		}
		close(hang)
		time.Sleep(time.Minute)
		synctest.Wait()
		if limit := limitOf(ctx); limit.free != 3 {
			t.Errorf("%d parts of 3 are there at the end", limit.free)
		}
		stop()
		waitA()
		waitB()
		end()
	})
}

// TestSharedPlaceThatHangsIsGivenUp: work keeps its place only until it yields, and its part of the limit only
// for a moment longer.
func TestSharedPlaceThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ctx, end := Share(ctx, 1)
		hang := make(chan struct{})
		worked := make(chan string, 4)
		work := func(ctx context.Context, key string) (int, error) {
			if key == "yields" {
				Yield(ctx)
			}
			if key == "hangs" {
				Yield(ctx)
				Yield(ctx) // again: it is not a second place
				<-hang
			}
			worked <- key
			return 0, nil
		}
		a, b := New(always(time.Second)).Shared(), New(always(time.Second)).Shared()
		waitA, waitB := a.Start(ctx, 1, work), b.Start(ctx, 1, work)
		a.Add("hangs")
		a.Add("yields")
		synctest.Wait()
		b.Add("other")
		a.Add("third")
		time.Sleep(2 * longestPart)
		synctest.Wait()
		if len(worked) != 3 {
			t.Errorf("%d keys were worked on beside one that hangs, want 3", len(worked))
		}
		close(hang)
		synctest.Wait()
		if limit := limitOf(ctx); limit.free != 1 {
			t.Errorf("%d parts of 1 are there at the end", limit.free)
		}
		stop()
		waitA()
		waitB()
		end()
	})
}

// TestNothingToDoCostsNoGoroutine: an idle queue has no goroutine, and many queues with occasional work have few
// goroutines.
func TestNothingToDoCostsNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ctx, end := Share(ctx, 100)
		var waits []func()
		var all []*Queue
		done := func(context.Context, string) (int, error) { return 0, nil }
		for range 100 {
			q := New(always(time.Second))
			all = append(all, q)
			waits = append(waits, q.Start(ctx, 10, done))
		}
		for i, q := range all {
			q.AddAfter("key", time.Duration(i)*time.Second)
		}
		most := 0
		for range 100 {
			time.Sleep(time.Second)
			synctest.Wait()
			most = max(most, goroutines())
		}
		if most > 2 {
			t.Errorf("%d goroutines for one key a second", most)
		}
		time.Sleep(2 * workerIdle)
		synctest.Wait()
		if left := goroutines(); left > 0 {
			t.Errorf("%d goroutines are left", left)
		}
		stop()
		for _, wait := range waits {
			wait()
		}
		end()
	})
}

// goroutines counts the goroutines of all pools.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("keyqueue.(*pool).run("))
}

// TestDoLendsAStack: Do calls the function in a goroutine of the pool, if there is a pool, and returns when the
// function has returned.
func TestDoLendsAStack(t *testing.T) {
	shared, end := Share(t.Context(), 1)
	defer end()
	for ctx, want := range map[context.Context]int{t.Context(): 0, shared: 1} {
		stack := ""
		Do(ctx, func() { stack = string(debug.Stack()) })
		if got := strings.Count(stack, "keyqueue.(*pool).run("); stack == "" || got != want {
			t.Errorf("it is done %d times in a pool, want %d: %s", got, want, stack)
		}
	}
}
