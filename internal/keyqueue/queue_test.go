// SPDX-License-Identifier: Apache-2.0

package keyqueue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// always retries after a fixed delay.
type always time.Duration

func (d always) Failed(context.Context, string, int, time.Time, error) (time.Duration, bool) {
	return time.Duration(d), true
}
func (always) Succeeded(string) {}

// giveUp retries never.
type giveUp struct{}

func (giveUp) Failed(context.Context, string, int, time.Time, error) (time.Duration, bool) {
	return 0, false
}
func (giveUp) Succeeded(string) {}

// inBubble runs test against a running queue in fake time.
func inBubble(t *testing.T, q *Queue, workers int, work Work, test func()) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); q.Run(ctx, workers, work) }()
		test()
		cancel()
		<-done
	})
}

type journal struct {
	mu    sync.Mutex
	start time.Time
	lines []string
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.start.IsZero() {
		j.start = time.Now()
	}
	j.lines = append(j.lines, fmt.Sprintf("%v ", time.Since(j.start))+fmt.Sprintf(format, args...))
}

func (j *journal) want(t *testing.T, want ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if fmt.Sprint(j.lines) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", j.lines, want)
	}
}

func TestOneWorkerPerKey(t *testing.T) {
	var mu sync.Mutex
	inside, most := map[string]int{}, 0
	q := New(always(0))
	work := func(_ context.Context, key string) (int, error) {
		mu.Lock()
		inside[key]++
		most = max(most, inside[key])
		mu.Unlock()
		time.Sleep(time.Second)
		mu.Lock()
		inside[key]--
		mu.Unlock()
		return 0, nil
	}
	inBubble(t, q, 8, work, func() {
		for range 20 {
			q.Add("a")
			q.Add("b")
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(time.Minute)
	})
	if most != 1 {
		t.Errorf("%d workers on one key at a time, want 1", most)
	}
}

func TestAddWhileWorkingWorksAgainOnce(t *testing.T) {
	var j journal
	q := New(always(0))
	work := func(_ context.Context, key string) (int, error) {
		j.note("work")
		time.Sleep(time.Second)
		return 0, nil
	}
	inBubble(t, q, 2, work, func() {
		q.Add("a")
		time.Sleep(time.Millisecond)
		q.Add("a")
		q.Add("a")
		time.Sleep(time.Minute)
	})
	j.want(t, "0s work", "1s work")
}

func TestRetryKeepsItsDelayAgainstAdd(t *testing.T) {
	var j journal
	q := New(always(10 * time.Second))
	failures := 1
	work := func(_ context.Context, key string) (int, error) {
		j.note("work")
		if failures > 0 {
			failures--
			return 0, errors.New("no")
		}
		return 0, nil
	}
	inBubble(t, q, 2, work, func() {
		q.Add("a")
		time.Sleep(time.Second)
		q.Add("a")
		time.Sleep(time.Minute)
	})
	j.want(t, "0s work", "10s work")
}

func TestAddNowAndKickEndADelay(t *testing.T) {
	for name, hurry := range map[string]func(*Queue){
		"AddNow": func(q *Queue) { q.AddNow("a") },
		"Kick":   (*Queue).Kick,
	} {
		t.Run(name, func(t *testing.T) {
			var j journal
			q := New(always(time.Hour))
			failures := 1
			work := func(_ context.Context, key string) (int, error) {
				j.note("work")
				if failures > 0 {
					failures--
					return 0, errors.New("no")
				}
				return 0, nil
			}
			inBubble(t, q, 2, work, func() {
				q.Add("a")
				time.Sleep(time.Second)
				hurry(q)
				time.Sleep(2 * time.Hour)
			})
			j.want(t, "0s work", "1s work")
		})
	}
}

// grows doubles the delay, beginning with one second, and counts the reported successes.
type grows struct{ succeeded int }

func (*grows) Failed(_ context.Context, _ string, tries int, _ time.Time, _ error) (time.Duration, bool) {
	return time.Second << (tries - 1), true
}
func (g *grows) Succeeded(string) { g.succeeded++ }

// TestAddNowBeginsTheBackoffAnew: after AddNow, earlier failures no longer count. After Kick, they still count.
func TestAddNowBeginsTheBackoffAnew(t *testing.T) {
	var j journal
	policy := &grows{}
	q := New(policy)
	work := func(context.Context, string) (int, error) {
		j.note("work")
		time.Sleep(100 * time.Millisecond)
		return 0, errors.New("no")
	}
	inBubble(t, q, 2, work, func() {
		q.Add("a")
		time.Sleep(5 * time.Second)
		q.AddNow("a")
		time.Sleep(4 * time.Second)
		q.Kick()
		time.Sleep(50 * time.Millisecond) // it is worked on
		q.AddNow("a")
		time.Sleep(4 * time.Second)
	})
	j.want(t, "0s work", "1.1s work", "3.2s work", "5s work", "6.1s work", "8.2s work", "9s work", "9.1s work", "10.2s work", "12.3s work")
	if policy.succeeded != 2 {
		t.Errorf("the policy was told %d times to forget failures, want once for each AddNow", policy.succeeded)
	}
}

func TestAddNowWhileFailingIsNotLost(t *testing.T) {
	var j journal
	q := New(always(time.Hour))
	failures := 1
	work := func(_ context.Context, key string) (int, error) {
		j.note("work")
		time.Sleep(time.Second)
		if failures > 0 {
			failures--
			return 0, errors.New("no")
		}
		return 0, nil
	}
	inBubble(t, q, 2, work, func() {
		q.Add("a")
		time.Sleep(time.Millisecond)
		q.AddNow("a")
		time.Sleep(time.Minute)
	})
	j.want(t, "0s work", "1s work")
}

func TestSoonestTimeCounts(t *testing.T) {
	var j journal
	q := New(always(0))
	work := func(_ context.Context, key string) (int, error) { j.note("work"); return 0, nil }
	inBubble(t, q, 2, work, func() {
		j.note("begin")
		q.AddAfter("a", time.Minute)
		q.AddAfter("a", time.Second)
		q.AddAfter("a", time.Hour)
		time.Sleep(2 * time.Hour)
	})
	j.want(t, "0s begin", "1s work")
}

func TestYieldLetsOthersWork(t *testing.T) {
	var j journal
	q := New(always(0))
	work := func(ctx context.Context, key string) (int, error) {
		if key == "hung" {
			Yield(ctx)
			Yield(ctx) // a second Yield changes nothing
			<-ctx.Done()
			return 0, nil
		}
		j.note("%s", key)
		return 0, nil
	}
	inBubble(t, q, 1, work, func() {
		q.Add("hung")
		q.Add("a")
		q.Add("b")
		time.Sleep(time.Second)
	})
	j.want(t, "0s a", "0s b")
}

func TestGivenUpKeyIsForgottenUntilAddedAnew(t *testing.T) {
	var j journal
	q := New(giveUp{})
	work := func(context.Context, string) (int, error) { j.note("work"); return 0, errors.New("no") }
	inBubble(t, q, 1, work, func() {
		q.Add("a")
		time.Sleep(time.Hour)
		if w, p := q.Len(0); w+p != 0 {
			t.Errorf("%d keys left, want 0", w+p)
		}
		q.Add("a")
		time.Sleep(time.Hour)
	})
	j.want(t, "0s work", "1h0m0s work")
}

func TestLenCountsByClass(t *testing.T) {
	q := New(always(time.Hour), always(time.Hour))
	hang := make(map[string]bool)
	work := func(ctx context.Context, key string) (int, error) {
		if hang[key] {
			<-ctx.Done()
		}
		return len(key) - 1, errors.New("no")
	}
	hang["w"] = true
	inBubble(t, q, 8, work, func() {
		q.Add("w")
		q.Add("x")
		q.Add("xx")
		q.Add("yy")
		time.Sleep(time.Second)
		if w, p := q.Len(0); w != 1 || p != 1 {
			t.Errorf("class 0: %d unprocessed, %d processing, want 1 and 1", w, p)
		}
		if w, p := q.Len(1); w != 2 || p != 0 {
			t.Errorf("class 1: %d unprocessed, %d processing, want 2 and 0", w, p)
		}
	})
}

func BenchmarkAddAndWork(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	q := New(always(0))
	left := make(chan struct{}, 1024)
	go q.Run(ctx, 4, func(context.Context, string) (int, error) { left <- struct{}{}; return 0, nil })
	keys := make([]string, 1024)
	for i := range keys {
		keys[i] = fmt.Sprint("pod-", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		q.Add(keys[i%len(keys)])
		<-left
	}
}

// TestBacklogIsWhatWaitsForAWorker: Backlog returns the number of keys that wait for a worker, and their longest wait. It does not count keys in
// progress or keys that wait for a time.
func TestBacklogIsWhatWaitsForAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New()
		ctx, cancel := context.WithCancel(t.Context())
		defer q.Start(ctx, 1, func(ctx context.Context, _ string) (int, error) { <-ctx.Done(); return 0, nil })()
		defer cancel()
		q.AddAfter("later", time.Hour)
		q.Add("works")
		synctest.Wait()
		if n, age := q.Backlog(); n != 0 || age != 0 {
			t.Errorf("%d wait for %v, want none", n, age)
		}
		q.Add("first")
		time.Sleep(time.Minute)
		q.Add("second")
		time.Sleep(time.Minute)
		if n, age := q.Backlog(); n != 2 || age != 2*time.Minute {
			t.Errorf("%d wait for %v, want 2 for 2m", n, age)
		}
	})
}
