// SPDX-License-Identifier: Apache-2.0

package node

import (
	"flag"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// TestRandomSchedules lets users, faults, crashes and restarts act at random for a while, and judges the histories. Plain go test runs a
// hundred fixed schedules; -rapid.checks runs thousands of new ones. A failed schedule is reduced and printed; -rapid.seed and
// -rapid.failfile run it again.
func TestRandomSchedules(t *testing.T) {
	drawn := false
	flag.Visit(func(f *flag.Flag) { drawn = drawn || strings.HasPrefix(f.Name, "rapid.") })
	if !drawn {
		setFlag(t, "rapid.seed", "1")
	}
	// One processor, so that a failed schedule fails again.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	failed := false
	rapid.Check(t, func(rt *rapid.T) {
		plan := drawSchedule(rt)
		problems := simulate(t, plan)
		if len(problems) == 0 {
			return
		}
		if !failed {
			failed = true
			t.Logf("first to fail:\n%v%s", plan, strings.Join(problems, "\n"))
		}
		rt.Logf("%v", plan)
		for _, problem := range problems {
			rt.Log(problem)
		}
		// The kind of problem without time and place, which shrinking must keep.
		kind, _, _ := strings.Cut(problems[0], ":")
		rt.Fatalf("%s is broken", kind)
	})
}

// setFlag sets a flag until the test ends.
func setFlag(t *testing.T, name, value string) {
	t.Helper()
	f := flag.Lookup(name)
	before := f.Value.String()
	if err := f.Value.Set(value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Value.Set(before); err != nil {
			t.Error(err)
		}
	})
}

// simulate runs a schedule in its own bubble and returns the problems.
func simulate(t *testing.T, plan simSchedule) (problems []string) {
	synctest.Test(t, func(t *testing.T) {
		w := newSimWorld(t.Context(), plan)
		w.run()
		problems = w.judge()
	})
	return problems
}
