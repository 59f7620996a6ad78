// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	beside = []Result{
		{Name: "[sig-node] a", State: Failed, Reason: "too late"}, {Name: "[sig-node] b", State: Failed, Reason: "wrong"},
		{Name: "[sig-node] c", State: Passed, Seconds: 1}, {Name: "[sig-node] d", State: NotRun},
	}
	again = []Result{{Name: "[sig-node] a", State: Passed, Seconds: 7}, {Name: "[sig-node] b", State: Failed, Reason: "still wrong"}, {Name: "[sig-node] c", State: Passed}}
)

func TestWhatRanAgain(t *testing.T) {
	got := WithAgain(beside, again)
	want := []Result{
		{Name: "[sig-node] a", State: Alone, Reason: "too late", Seconds: 7}, {Name: "[sig-node] b", State: Failed, Reason: "wrong"},
		{Name: "[sig-node] c", State: Passed, Seconds: 1}, {Name: "[sig-node] d", State: NotRun},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if beside[0].State != Failed {
		t.Error("the results of the first run were changed")
	}
}

func TestPageSaysWhatPassedOnlyAlone(t *testing.T) {
	// A known reason for a failure does not apply to a test that passed in the end, and does not hide the
	// message of the test.
	page := Page{Results: WithAgain(beside, again), Known: Known{"a": "it is slow"}, Parts: []Part{{Title: "All", Groups: []string{"node"}}}, Runs: []Run{
		{Set: "first", Report: Report{Results: beside, Procs: 8, Took: 31 * time.Minute}}, {Set: "again", Report: Report{Results: again, Procs: 1, Took: time.Minute}},
	}}
	wantInOrder(t, page.String()+page.Table(),
		"| `first` | 4 | 8 | 31 |\n", "| `again` | 3 | 1 | 1 |\n",
		"| Tests | Passed | Passed alone | Failed | Skipped | Not run |\n|---|---|---|---|---|---|\n", "| **together** | 1 | 1 | 1 | 0 | 1 |\n",
		"| \\[sig-node\\] a | passed alone | Beside others: too late |\n", "| \\[sig-node\\] b | failed | wrong |\n",
		"[sig-node] a\tpassed alone\t7\n")
	if got := page.Unexplained(); !slices.Equal(got, []string{"[sig-node] b"}) {
		t.Errorf("got %q without a reason, want what failed again", got)
	}
}

func TestPageComparesWhatBothRan(t *testing.T) {
	page := Page{
		Results: []Result{
			{Name: "a", State: Failed}, {Name: "b", State: Passed}, {Name: "c", State: Passed}, {Name: "d", State: NotRun}, {Name: "e", State: Passed}, {Name: "f", State: Passed},
		},
		Beside: &Beside{Who: "two others", Results: []Result{
			{Name: "a", State: Failed, Reason: "no such thing"}, {Name: "b", State: Failed, Reason: "other thing"}, {Name: "c", State: Passed}, {Name: "d", State: Passed}, {Name: "e", State: NotRun},
		}},
	}
	text := page.String()
	wantInOrder(t, text, "## Beside two others\n", "3 of these tests ran with two others too",
		"| here | 2 | 0 | 1 | 0 |\n", "| two others | 1 | 0 | 2 | 0 |\n",
		"| a | failed | failed | no such thing |\n", "| b | passed | failed | other thing |\n")
	if strings.Contains(text, "| c | passed | passed") {
		t.Errorf("the page compares what passed with both:\n%s", text)
	}
	if text := (Page{Results: page.Results}).String(); strings.Contains(text, "Beside") {
		t.Errorf("the page compares with nothing:\n%s", text)
	}
}

func wantInOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("want %q in this place of the page:\n%s", part, text)
		}
		rest = after
	}
}
