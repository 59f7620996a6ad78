// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
)

// WithAgain adds the results of failed tests after they ran again, one by one. A test with a second failure has
// failed.
func WithAgain(results, again []Result) []Result {
	by := byName(again)
	results = slices.Clone(results)
	for i, r := range results {
		if second, ran := by[r.Name]; r.State == Failed && ran && second.State == Passed {
			results[i].State, results[i].Seconds = Alone, second.Seconds
		}
	}
	return results
}

// Beside has the results of another agent for the same tests in the same environment.
type Beside struct {
	// Who names the other agent for use in a sentence, for example "two kubelets".
	Who     string
	Results []Result
}

// writeBeside writes the comparison: totals of the tests that both agents ran, and a row for each test that did not pass with one of
// them.
func (p Page) writeBeside(b *strings.Builder) {
	if p.Beside == nil {
		return
	}
	others := byName(p.Beside.Results)
	// A test that only one agent ran is not a difference.
	common := slices.DeleteFunc(slices.Clone(p.Results), func(r Result) bool {
		other, ok := others[r.Name]
		return !ok || other.State == NotRun || r.State == NotRun
	})
	theirs := make([]Result, len(common))
	for i, r := range common {
		theirs[i] = others[r.Name]
	}
	fmt.Fprintf(b, "\n## Beside %s\n\n%d of these tests ran with %s too, in the same place.\n", p.Beside.Who, len(common), p.Beside.Who)
	b.WriteString("\n| | Passed | Passed alone | Failed | Skipped |\n|---|---|---|---|---|\n")
	for _, row := range []struct {
		who     string
		results []Result
	}{{"here", common}, {p.Beside.Who, theirs}} {
		n := countStates(row.results)
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d |\n", row.who, n[Passed], n[Alone], n[Failed], n[Skipped])
	}
	var rows strings.Builder
	for i, r := range common {
		if r.State != Passed || theirs[i].State != Passed {
			fmt.Fprintf(&rows, "| %s | %s | %s | %s |\n", escapeCell(r.Name), r.State, theirs[i].State, escapeCell(theirs[i].Reason))
		}
	}
	if rows.Len() == 0 {
		return
	}
	fmt.Fprintf(b, "\nThese did not pass at once with both:\n\n| Test | Here | With %s | What the test said there |\n|---|---|---|---|\n%s", p.Beside.Who, rows.String())
}

// countStates returns the number of results in each state.
func countStates(results []Result) map[string]int {
	n := map[string]int{}
	for _, r := range results {
		n[r.State]++
	}
	return n
}

func byName(results []Result) map[string]Result {
	by := map[string]Result{}
	for _, r := range results {
		by[r.Name] = r
	}
	return by
}
