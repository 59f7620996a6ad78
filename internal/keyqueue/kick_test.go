// SPDX-License-Identifier: Apache-2.0

package keyqueue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestKickTakesRetriesAndNothingElse: Kick makes all retries ready, but no key that waits for a time. The test mixes both kinds in many orders of the
// heap.
func TestKickTakesRetriesAndNothingElse(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		q := New(always(0))
		now := time.Now()
		retries, times := map[string]bool{}, map[string]bool{}
		for i := range 1 + random.IntN(60) {
			it := &item{key: fmt.Sprint(i)}
			q.items[it.key] = it
			isRetry := random.IntN(2) == 0
			if isRetry {
				retries[it.key] = true
			} else {
				times[it.key] = true
			}
			q.wait(it, now.Add(time.Duration(random.IntN(1000))*time.Millisecond), isRetry)
		}
		q.Kick()
		kicked := map[string]bool{}
		for _, it := range q.ready {
			if kicked[it.key] {
				t.Fatalf("seed %d: %s is ready twice", seed, it.key)
			}
			kicked[it.key] = true
		}
		if !maps.Equal(kicked, retries) {
			t.Fatalf("seed %d: ready are %v, want %v", seed, kicked, retries)
		}
		q.ready = nil
		var last time.Time
		left := map[string]bool{}
		for len(q.later) > 0 {
			for i, it := range q.later {
				if it.pos != i {
					t.Fatalf("seed %d: %s is at %d and says %d", seed, it.key, i, it.pos)
				}
			}
			due := q.later[0].due
			q.takeDue(due)
			if due.Before(last) || len(q.ready) == 0 {
				t.Fatalf("seed %d: the heap is out of order", seed)
			}
			for len(q.ready) > 0 {
				left[q.popReady().key] = true
			}
			last = due
		}
		if !maps.Equal(left, times) {
			t.Fatalf("seed %d: still waiting are %v, want %v", seed, slices.Sorted(maps.Keys(left)), slices.Sorted(maps.Keys(times)))
		}
	}
}

// TestKickMeetsWhatIsDue: some of the kicked retries are due already, but no worker has checked yet.
func TestKickMeetsWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(always(0))
		for i := range 1000 {
			it := &item{key: fmt.Sprint(i)}
			q.items[it.key] = it
			q.wait(it, time.Now().Add(time.Duration(i-500)*time.Second), true) // without a worker, no key is processed
		}
		ctx, stop := context.WithCancel(t.Context())
		q.run = &run{ctx: ctx, timer: time.NewTimer(time.Hour)}
		q.Kick()
		if len(q.ready) != 1000 || len(q.later) != 0 {
			t.Errorf("%d are ready and %d wait, want that all are ready", len(q.ready), len(q.later))
		}
		stop()
	})
}

// TestPlacesAreNeverExceeded: reused, idle and replaced workers never take more than the given number of places.
func TestPlacesAreNeverExceeded(t *testing.T) {
	const places = 3
	var j journal
	inside, most := 0, 0
	q := New(always(time.Second))
	tries := map[string]int{}
	work := func(_ context.Context, key string) (int, error) {
		j.mu.Lock()
		inside++
		most = max(most, inside)
		tries[key]++
		try := tries[key]
		j.mu.Unlock()
		time.Sleep(time.Duration(1+len(key)) * 300 * time.Millisecond)
		j.mu.Lock()
		inside--
		j.mu.Unlock()
		if try == 1 {
			return 0, errors.New("no")
		}
		return 0, nil
	}
	inBubble(t, q, places, work, func() {
		for round := range 4 {
			for i := range 20 {
				q.Add(fmt.Sprint(round, "-", i))
			}
			time.Sleep(time.Duration(round) * workerIdle) // idle workers may or may not end
		}
		time.Sleep(time.Hour)
	})
	if most != places || len(tries) != 80 {
		t.Errorf("%d at a time on %d keys, want %d on 80", most, len(tries), places)
	}
	for key, n := range tries {
		if n != 2 {
			t.Errorf("%s was worked on %d times, want 2", key, n)
		}
	}
}

func BenchmarkAddAndTake(b *testing.B) {
	q := New(always(0))
	b.ReportAllocs()
	for b.Loop() {
		q.Add("default/pod-1")
		delete(q.items, q.popReady().key)
	}
}
