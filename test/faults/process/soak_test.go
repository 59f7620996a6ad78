// SPDX-License-Identifier: Apache-2.0

package process

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	soak       = flag.Duration("soak", 0, "how long TestSoak kills the daemon")
	soakReport = flag.String("soak-report", "", "`file`, from the root of the module, to which TestSoak writes its result")
)

const (
	soakEvery = 5 * time.Second
	soakRate  = 10 // pods a second
	// soakLeast is the number of pods that must come in every minute. With fewer pods, the test would prove
	// nothing.
	soakLeast = 60
)

// TestSoak kills the daemon for hours, while pods come and go.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("this test lasts for as long as it is told to: make soak, or -soak=1h and a longer -timeout")
	}
	if end, limited := t.Deadline(); limited && time.Until(end) < *soak+2*patience {
		t.Fatalf("the tests end in %v: give a -timeout", time.Until(end).Round(time.Second))
	}
	w := newWorld(t, quick)
	r := &soaked{world: w, steady: 50}
	defer r.report()
	ids := w.steady(r.steady)
	began := time.Now()
	w.storm(soakRate, soakEvery, &r.measured, func() bool {
		r.length = time.Since(began)
		if r.kills%50 == 0 {
			t.Logf("%d kills in %v", r.kills, r.length.Round(time.Second))
		}
		return r.length < *soak
	})
	w.awaitInStep()
	r.inStep = true
	for uid, id := range w.instances() {
		if want, is := ids[uid]; is && want == id {
			r.kept++
		}
	}
	if r.kept != r.steady {
		t.Errorf("%d of %d pods that nobody touched have the instance that they had", r.kept, r.steady)
	}
	for minute := range int(r.length / time.Minute) {
		if n := w.records.came(minute); n < soakLeast {
			t.Errorf("%d pods came in minute %d, want at least %d", n, minute, soakLeast)
		}
	}
	w.judged()
}

// came returns the number of pods that were created in the given minute.
func (r *records) came(minute int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.perMinute[minute]
}

// soaked is the result of TestSoak.
type soaked struct {
	*world
	measured
	length       time.Duration
	steady, kept int
	inStep       bool
}

// report writes the result, even a bad one.
func (r *soaked) report() {
	violations := r.records.failure()
	r.records.mu.Lock()
	pods, calls := r.records.pods, r.records.calls
	r.records.mu.Unlock()
	least := -1
	for minute := range int(r.length / time.Minute) {
		if n := r.records.came(minute); least < 0 || n < least {
			least = n
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Soak\n\nThe daemon is killed with SIGKILL about every %v, while pods come, change, end, are deleted, and come again "+
		"under the same name.\nThe backend lives on. Every pod is judged by the safety invariants S1 to S8 of [the fault matrix](faults.md). `make soak` "+
		"writes this page.\n\n", soakEvery)
	rows := [][2]string{
		{"Length", r.length.Round(time.Second).String()},
		{"Kills", fmt.Sprint(r.kills)},
		{"Pods", fmt.Sprintf("%d, at least %d in every minute", pods, least)},
		{"Calls of the provider that change something", fmt.Sprint(calls)},
		{"Violations of safety", fmt.Sprint(len(violations))},
		{"Pods that nobody touched, with their first instance at the end", fmt.Sprintf("%d of %d", r.kept, r.steady)},
		{"Both sides agree on all pods at the end", fmt.Sprint(r.inStep)},
		{"Start to Ready, p50 / p99", both(r.ready)},
		{"Start to all pods in step that waited for it, p50 / p99", both(r.converged)},
		{"RSS of the daemon, at most", fmt.Sprintf("%d MiB", r.rss>>20)},
	}
	b.WriteString("| What | Result |\n|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], row[1])
	}
	b.WriteString("\nPods that were deleted without grace while the daemon was down, and those that wait for their names, are not in the\n" +
		"times above: what is left of them at the backend stays for the ten seconds in which the API server might still know them.\n")
	r.Log("\n" + b.String())
	if *soakReport == "" {
		return
	}
	path := *soakReport
	if !filepath.IsAbs(path) {
		path = filepath.Join("..", "..", "..", path)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		r.Errorf("write the report: %v", err)
	}
}

func both(d durations) string {
	return fmt.Sprintf("%v / %v", d.p(50).Round(time.Millisecond), d.p(99).Round(time.Millisecond))
}
