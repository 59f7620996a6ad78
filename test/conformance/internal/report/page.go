// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Page is docs/reports/conformance.md.
type Page struct {
	// Head is the text before the results. It contains the Title of a run and its time.
	Head string
	// Parts are the tables of totals.
	Parts   []Part
	Results []Result
	Known   Known
	// Runs are the sets of the run, in their order.
	Runs []Run
	// Beside is nil if there is nothing to compare with.
	Beside *Beside
}

// Run is the report of a run of one set.
type Run struct {
	Set string
	Report
}

// Merge joins the results of several sets. A test with a failure in one set has failed. A test counts as not run only if no set ran
// it.
func Merge(sets ...[]Result) []Result {
	by := map[string]Result{}
	for _, set := range sets {
		for _, r := range set {
			if old, ok := by[r.Name]; ok && (old.State == Failed || r.State == NotRun) {
				continue
			}
			by[r.Name] = r
		}
	}
	merged := slices.Collect(maps.Values(by))
	slices.SortFunc(merged, func(a, b Result) int { return strings.Compare(a.Name, b.Name) })
	return merged
}

// Summary returns the number of tests by result, in one line.
func (p Page) Summary() string {
	n := countStates(p.Results)
	return fmt.Sprintf("%d passed, %d failed at first and passed alone, %d failed, %d skipped, %d not run", n[Passed], n[Alone], n[Failed], n[Skipped], n[NotRun])
}

// Unexplained returns the failed tests without a known reason.
func (p Page) Unexplained() []string {
	var names []string
	for _, r := range p.Results {
		if r.State == Failed && p.Known.knownPart(r.Name) == "" {
			names = append(names, r.Name)
		}
	}
	return names
}

// String returns the text of the page.
func (p Page) String() string {
	var b strings.Builder
	b.WriteString(p.Head)
	p.writeRuns(&b)
	b.WriteString("\n## Totals\n")
	for _, part := range p.Parts {
		p.writeTotals(&b, part)
	}
	p.writeExceptions(&b)
	p.writeBeside(&b)
	return b.String()
}

// Table returns every test with its result and seconds, in lines of tab-separated values.
func (p Page) Table() string {
	var b strings.Builder
	b.WriteString("test\tresult\tseconds\n")
	for _, r := range p.Results {
		fmt.Fprintf(&b, "%s\t%s\t%.0f\n", r.Name, r.State, r.Seconds)
	}
	return b.String()
}

// writeRuns writes how the tests on the page ran.
func (p Page) writeRuns(b *strings.Builder) {
	if len(p.Runs) == 0 {
		return
	}
	b.WriteString("\n## This run\n\n| Set | Tests that ran | At a time | Minutes |\n|---|---|---|---|\n")
	for _, run := range p.Runs {
		fmt.Fprintf(b, "| `%s` | %d | %d | %.0f |\n", run.Set, len(run.Results), run.Procs, run.Took.Minutes())
	}
}

// Part is a table of totals: the tests of some of Kubernetes' special interest groups.
type Part struct {
	Title string
	// Groups are names of groups without "sig-". Tags are parts of names with totals of their own.
	Groups, Tags []string
	// Isolated are tests with a separate count, because they need a network for each pod. Nil means no separate count.
	Isolated Known
}

func (p Part) hasResult(r Result) bool {
	return slices.ContainsFunc(p.Groups, func(group string) bool { return strings.Contains(r.Name, "[sig-"+group+"]") })
}

// writeTotals writes the table of a part; there is no table if no test of the part was selected.
func (p Page) writeTotals(b *strings.Builder, part Part) {
	results := slices.DeleteFunc(slices.Clone(p.Results), func(r Result) bool { return !part.hasResult(r) })
	if len(results) == 0 {
		return
	}
	// Nearly no page has repeated tests, so only pages with such tests have the column.
	states := []string{Passed, Alone, Failed, Skipped, NotRun}
	if countStates(p.Results)[Alone] == 0 {
		states = slices.DeleteFunc(states, func(state string) bool { return state == Alone })
	}
	fmt.Fprintf(b, "\n### %s\n\n| Tests |", part.Title)
	for _, state := range states {
		fmt.Fprintf(b, " %s |", strings.ToUpper(state[:1])+state[1:])
	}
	b.WriteString("\n|" + strings.Repeat("---|", len(states)+1) + "\n")
	some := func(name string, counts func(Result) bool) {
		n := countStates(slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return !counts(r) }))
		fmt.Fprintf(b, "| %s |", name)
		for _, state := range states {
			fmt.Fprintf(b, " %d |", n[state])
		}
		b.WriteString("\n")
	}
	row := func(name, tag string) { some(name, func(r Result) bool { return strings.Contains(r.Name, tag) }) }
	for _, group := range part.Groups {
		if !slices.ContainsFunc(results, func(r Result) bool { return strings.Contains(r.Name, "[sig-"+group+"]") }) {
			continue // the set that has them was not run
		}
		row("`[sig-"+group+"]`", "[sig-"+group+"]")
	}
	for _, tag := range part.Tags {
		row("those with `["+tag+"]`", "["+tag+"]")
	}
	if part.Isolated != nil {
		some("those that need a network for each pod", func(r Result) bool { return part.Isolated.knownPart(r.Name) != "" })
		some("those that need none", func(r Result) bool { return part.Isolated.knownPart(r.Name) == "" })
	}
	row("**together**", "")
	part.writeIsolation(b, results)
}

// writeIsolation writes the table of tests for a network per pod, by their requirements.
func (p Part) writeIsolation(b *strings.Builder, results []Result) {
	if p.Isolated == nil {
		return
	}
	b.WriteString("\nThese need a network for each pod:\n\n| Tests with this in their names | How many | What they ask for |\n|---|---|---|\n")
	many := map[string]int{}
	for _, r := range results {
		many[p.Isolated.knownPart(r.Name)]++
	}
	for _, part := range slices.Sorted(maps.Keys(p.Isolated)) {
		fmt.Fprintf(b, "| %s | %d | %s |\n", escapeCell(part), many[part], escapeCell(p.Isolated[part]))
	}
}

// writeExceptions writes the tests without a pass, each with its reason. Excluded tests share a line by their reason.
func (p Page) writeExceptions(b *strings.Builder) {
	b.WriteString("\n## What did not pass, and why\n\n| Test | Result | Reason |\n|---|---|---|\n")
	notRun := map[string]int{}
	for _, r := range p.Results {
		part := p.Known.knownPart(r.Name)
		switch {
		case r.State == Passed:
		case r.State == NotRun && part != "":
			notRun[part]++
		case r.State == Alone:
			// A known reason for a failure does not apply if the test passes in the end.
			fmt.Fprintf(b, "| %s | %s | Beside others: %s |\n", escapeCell(r.Name), r.State, escapeCell(r.Reason))
		case part != "":
			fmt.Fprintf(b, "| %s | %s | %s |\n", escapeCell(r.Name), r.State, escapeCell(p.Known[part]))
		default:
			fmt.Fprintf(b, "| %s | %s | %s |\n", escapeCell(r.Name), r.State, escapeCell(r.Reason))
		}
	}
	for _, part := range slices.Sorted(maps.Keys(notRun)) {
		fmt.Fprintf(b, "| %d with %s in their names | %s | %s |\n", notRun[part], escapeCell(part), NotRun, escapeCell(p.Known[part]))
	}
}

var escapes = strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "[", `\[`, "]", `\]`, "*", `\*`, "_", `\_`, "`", "'", "$", `\$`)

func escapeCell(s string) string { return escapes.Replace(s) }
