// SPDX-License-Identifier: Apache-2.0

package lookups

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// asked counts requests by instance. The instances in settled have reached their expected state.
type asked struct {
	mu      sync.Mutex
	times   map[string]int
	settled map[string]bool
	fails   string
}

func (a *asked) ask(_ context.Context, id string) (int, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if id == a.fails {
		return 0, false, errors.New("the service is away")
	}
	a.times[id]++
	return a.times[id], a.settled[id], nil
}

func instances(n int) map[string]Listed {
	all := map[string]Listed{}
	for i := range n {
		all[fmt.Sprint("i", i)] = Listed{}
	}
	return all
}

// TestOthersShareTheBudget checks that requests at rest stay within the budget and give each instance its turn.
// Requests for new instances come at once and in addition.
func TestOthersShareTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{times: map[string]int{}, settled: map[string]bool{}}
		all := instances(100)
		for id := range all {
			a.settled[id] = true
		}
		l := New(60, time.Second, time.Second, a.ask)
		round := func() {
			t.Helper()
			if err := l.Refresh(t.Context(), all); err != nil {
				t.Fatal(err)
			}
		}
		round()
		if len(a.times) != 100 {
			t.Fatalf("at first %d of 100 were asked about", len(a.times))
		}
		for range 120 { // ten minutes
			time.Sleep(5 * time.Second)
			round()
		}
		sum, least := 0, 1000
		for _, n := range a.times {
			sum, least = sum+n-1, min(least, n-1)
		}
		if sum < 590 || sum > 610 || least < 5 {
			t.Errorf("%d requests in ten minutes with a budget of 60 for each, and %d about the one with the fewest", sum, least)
		}
		all["new"] = Listed{}
		round()
		if got := l.Last("new"); got != 1 {
			t.Errorf("the new one was asked about %d times", got)
		}
	})
}

// TestWhatMayEndIsAskedAboutFirst checks the order of requests. A recently started instance is looked up more often than an old one, and an instance
// that ends by itself more often than one that does not. An instance that lists report is only looked up within the budget.
func TestWhatMayEndIsAskedAboutFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{times: map[string]int{}, settled: map[string]bool{"young": true, "job": true}}
		all := map[string]Listed{}
		for i := range 100 {
			id := fmt.Sprint("old-", i)
			a.settled[id], all[id] = true, Listed{Since: time.Now().Add(-time.Duration(i+1) * time.Hour)}
		}
		l := New(60, time.Second, time.Second, a.ask)
		for round := range 36 { // three minutes
			if round == 24 {
				all["young"], all["job"] = Listed{Since: time.Now()}, Listed{Since: time.Now(), Ends: true}
			}
			time.Sleep(5 * time.Second)
			if err := l.Refresh(t.Context(), all); err != nil {
				t.Fatal(err)
			}
		}
		sum, most := 0, 0
		for id, n := range a.times {
			if sum += n; id != "young" && id != "job" {
				most = max(most, n)
			}
		}
		if sum > 185 || a.times["job"] != 12 || a.times["young"] < 5 || a.times["young"] > a.times["job"] || most > 2 {
			t.Errorf("%d requests in three minutes; in the last one %d about the job and %d about what is young; up to %d about what is old", sum, a.times["job"], a.times["young"], most)
		}
	})
}

// TestWhatEndsGoesBeforeWhatDoesNot checks that a few instances that end by themselves are requested in each round, independently of the number of
// other instances, even after hours.
func TestWhatEndsGoesBeforeWhatDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{times: map[string]int{}, settled: map[string]bool{}}
		l, since := New(60, 0, 0, a.ask), time.Now().Add(-time.Hour)
		all := map[string]Listed{"job-0": {Since: since, Ends: true}, "job-1": {Since: since, Ends: true}}
		for i := range 1000 {
			all[fmt.Sprint("web-", i)] = Listed{Since: since}
		}
		for id := range all {
			a.settled[id] = true
		}
		for range 120 { // ten minutes
			time.Sleep(5 * time.Second)
			if err := l.Refresh(t.Context(), all); err != nil {
				t.Fatal(err)
			}
		}
		others := 0
		for id, n := range a.times {
			if all[id].Ends && n != 120 {
				t.Errorf("%d requests about %s in 120 rounds", n, id)
			} else if !all[id].Ends {
				others += n
			}
		}
		if others < 355 || others > 365 {
			t.Errorf("%d requests about the others, want the rest of the budget of 600", others)
		}
	})
}

// TestChangesTakeFromTheBudget checks that requests about changing instances leave less of the budget to the others.
func TestChangesTakeFromTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{times: map[string]int{}, settled: map[string]bool{"rests": true}}
		l, all := New(60, 0, 0, a.ask), map[string]Listed{"rests": {Since: time.Now().Add(-time.Hour)}}
		for i := range 10 {
			all[fmt.Sprint("stops-", i)] = Listed{Changes: true}
		}
		for range 12 {
			time.Sleep(5 * time.Second)
			if err := l.Refresh(t.Context(), all); err != nil {
				t.Fatal(err)
			}
		}
		if a.times["rests"] != 0 || a.times["stops-0"] != 12 {
			t.Errorf("%d requests about what rests and %d about what stops in 12 rounds", a.times["rests"], a.times["stops-0"])
		}
	})
}

// TestOptionalChangesStayWithinTheBudget checks that requests about optional changes come before those about settled instances,
// and do not exceed the budget.
func TestOptionalChangesStayWithinTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{times: map[string]int{}, settled: map[string]bool{"rests": true}}
		l, all := New(60, 0, 0, a.ask), map[string]Listed{"rests": {Since: time.Now().Add(-time.Hour), Ends: true}}
		for i := range 100 {
			all[fmt.Sprint("stops-", i)] = Listed{Changes: true, Optional: true}
		}
		for range 12 {
			time.Sleep(5 * time.Second)
			if err := l.Refresh(t.Context(), all); err != nil {
				t.Fatal(err)
			}
		}
		sum := 0
		for _, n := range a.times {
			sum += n
		}
		if a.times["rests"] != 0 || sum < 55 || sum > 65 {
			t.Errorf("%d requests in a minute, and %d about what rests, want 60 and none", sum, a.times["rests"])
		}
	})
}

// TestFirstRequestAboutAChangeWaits checks that the first request about a change is after the pause.
func TestFirstRequestAboutAChangeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{times: map[string]int{}, settled: map[string]bool{"a": true}}
		l := New(60, 4*time.Second, 4*time.Second, a.ask)
		for round, is := range []Listed{{}, {Changes: true}, {Changes: true}, {Changes: true}} { // each 2 s
			if err := l.Refresh(t.Context(), map[string]Listed{"a": is}); err != nil {
				t.Fatal(err)
			}
			if want := []int{1, 1, 1, 2}[round]; a.times["a"] != want {
				t.Errorf("round %d: %d requests, want %d", round, a.times["a"], want)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// TestHasteWearsOff checks that an instance that does not reach its expected state is looked up in each round, and then less often, but at least once
// a minute. The same holds for an instance that is about to change.
func TestHasteWearsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{times: map[string]int{}, settled: map[string]bool{"stops": true}}
		l := New(1, time.Second, time.Second, a.ask)
		all := map[string]Listed{"waits": {}, "stops": {}}
		if err := l.Refresh(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		all["stops"] = Listed{Changes: true} // the instance ran, and is about to go
		after := func(d time.Duration) int {
			before := a.times["waits"]
			for range d / (2 * time.Second) {
				if err := l.Refresh(t.Context(), all); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
			}
			return a.times["waits"] - before
		}
		if n := after(10 * time.Second); n != 4 { // the first round is before the end of the pause
			t.Errorf("%d requests in the first 5 rounds", n)
		}
		after(20 * time.Minute)
		if n := after(10 * time.Minute); n < 9 || n > 11 {
			t.Errorf("%d requests in ten minutes after twenty", n)
		}
		if n := a.times["stops"]; n < 5*60/2 || n > 5*60/2+60 { // in each round for five minutes
			t.Errorf("%d requests about what is about to change", n)
		}
	})
}

// TestPauseAfterACreate checks that a new instance is not looked up while it starts, and afterwards at most once per pause.
func TestPauseAfterACreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{times: map[string]int{}, settled: map[string]bool{}}
		l := New(60, 5*time.Second, 2*time.Second, a.ask)
		l.Made("a")
		for i, want := range []int{0, 0, 0, 0, 0, 1, 1, 2, 2, 3} { // a round each second
			if err := l.Refresh(t.Context(), map[string]Listed{"a": {}}); err != nil {
				t.Fatal(err)
			}
			if a.times["a"] != want {
				t.Errorf("after %d s: %d requests, want %d", i, a.times["a"], want)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestWhatIsNotNamedIsForgotten checks that an instance that is no longer listed is forgotten, but not while lists may lack it because it is new.
func TestWhatIsNotNamedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{times: map[string]int{}, settled: map[string]bool{"a": true}}
		l := New(60, time.Second, time.Second, a.ask)
		for _, want := range []int{1, 1, 0} {
			all := map[string]Listed{}
			if len(a.times) == 0 {
				all["a"] = Listed{}
			}
			if err := l.Refresh(t.Context(), all); err != nil {
				t.Fatal(err)
			}
			if got := l.Last("a"); got != want {
				t.Errorf("the answer is %d, want %d", got, want)
			}
			time.Sleep(30 * time.Second)
		}
	})
}

// TestErrorOfOneIsThatOfTheRound checks that the error of one instance is the error of the round, and that known
// states stay.
func TestErrorOfOneIsThatOfTheRound(t *testing.T) {
	a := &asked{times: map[string]int{}, settled: map[string]bool{}}
	l := New(60, 0, 0, a.ask)
	all := map[string]Listed{"a": {}, "b": {}}
	if err := l.Refresh(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	a.fails = "b"
	if err := l.Refresh(t.Context(), all); err == nil {
		t.Error("the round has not failed")
	}
	if l.Last("b") != 1 {
		t.Error("what was known is gone")
	}
}
