// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Page is docs/conformance.md.
type Page struct {
	// Head is what stands before the results; Title of a run and its time are in it.
	Head    string
	Results []Result
	Known   Known
}

// Merge brings the results of several sets together: a test that ran in several has failed if one of them failed.
func Merge(sets ...[]Result) []Result {
	by := map[string]Result{}
	for _, set := range sets {
		for _, r := range set {
			if old, ok := by[r.Name]; ok && old.State == Failed {
				continue
			}
			by[r.Name] = r
		}
	}
	merged := slices.Collect(maps.Values(by))
	slices.SortFunc(merged, func(a, b Result) int { return strings.Compare(a.Name, b.Name) })
	return merged
}

// Summary is how many tests ended how, in one line.
func (p Page) Summary() string {
	count := map[string]int{}
	for _, r := range p.Results {
		count[r.State]++
	}
	return fmt.Sprintf("%d passed, %d failed, %d skipped, %d not run", count[Passed], count[Failed], count[Skipped], count[NotRun])
}

// Unexplained are the tests that failed without a known reason.
func (p Page) Unexplained() []string {
	var names []string
	for _, r := range p.Results {
		if r.State == Failed && p.Known.reason(r.Name) == "" {
			names = append(names, r.Name)
		}
	}
	return names
}

// String is the page.
func (p Page) String() string {
	var b strings.Builder
	b.WriteString(p.Head)
	fmt.Fprintf(&b, "\n## Totals\n\n| Tests | Passed | Failed | Skipped | Not run |\n|---|---|---|---|---|\n")
	for _, group := range []struct{ name, tag string }{
		{"`[Conformance]`", "[Conformance]"}, {"`[NodeConformance]`", "[NodeConformance]"}, {"both together", ""},
	} {
		count := map[string]int{}
		for _, r := range p.Results {
			if strings.Contains(r.Name, group.tag) {
				count[r.State]++
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", group.name, count[Passed], count[Failed], count[Skipped], count[NotRun])
	}
	p.exceptions(&b)
	b.WriteString("\n## Every test\n\n| Test | Result | Seconds |\n|---|---|---|\n")
	for _, r := range p.Results {
		fmt.Fprintf(&b, "| %s | %s | %.0f |\n", cell(r.Name), r.State, r.Seconds)
	}
	return b.String()
}

// exceptions are the tests that did not pass, each with its reason.
func (p Page) exceptions(b *strings.Builder) {
	b.WriteString("\n## What did not pass, and why\n\n| Test | Result | Reason |\n|---|---|---|\n")
	for _, r := range p.Results {
		if r.State == Passed {
			continue
		}
		reason := p.Known.reason(r.Name)
		if reason == "" {
			reason = r.Reason
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", cell(r.Name), r.State, cell(reason))
	}
}

var escapes = strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "[", `\[`, "]", `\]`, "*", `\*`, "_", `\_`, "`", "'", "$", `\$`)

func cell(s string) string { return escapes.Replace(s) }
