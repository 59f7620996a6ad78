// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/rowpage"
)

const preamble = `# Faults

What breaks, what must hold, and what the tests saw. This page is written by ` + "`make faults`" + ` from the results of the tests;
each row's tests carry its number in their names (` + "`TestFault05…`" + `). The invariants S1 to S8 are the checkers of
` + "`providertest/ledger`" + `, which judge every run.

`

// without are the rows without a test, with the reason.
var without = map[int]string{
	46: "nothing is stored on disk",
	49: "nothing is stored on disk",
}

// withoutShared are the rows with skipped tests on shared nodes, with the reason.
var withoutShared = map[int]string{
	23: "the certificate is that of one node, and nodes that are shared have none of their own",
}

// noTest is the prefix of the result of a row without need of a test.
const noTest = "none: "

// renderPage returns the report.
func (r *results) renderPage() string {
	page := &rowpage.Page{Intro: preamble, Columns: []string{"#", "Fault", "Measure", "Result", "Tests: injected → measured"}}
	proven, rows := 0, 0
	for _, row := range faultrow.Rows() {
		result := r.rowResult(row.Number)
		if !strings.HasPrefix(result, noTest) {
			rows++
			if result == holds {
				proven++
			}
		}
		page.Add(row.Group, strconv.Itoa(row.Number), row.Fault, row.Target, result, r.rowTests(row.Number))
	}
	length := "Faults that last for minutes in the table were shortened to what shows the same (`make faults LONG=1` has the full length)."
	if faultrow.Long() {
		length = "Every fault lasted as long as the table says."
	}
	if faultrow.Shared() {
		length += " The nodes of the tests in test/faults were nodes of a group, which several processes could share (`make faults SHARED=1`)."
	}
	return page.Markdown(fmt.Sprintf("%d of %d rows hold, by %d tests. %s", proven, rows, len(r.byTest), length))
}

const holds = "holds"

// rowResult returns the result of a row, computed from all its tests.
func (r *results) rowResult(row int) string {
	if why := without[row]; why != "" {
		return noTest + why
	}
	tests := r.testsOf(row)
	if len(tests) == 0 {
		return "**no test**"
	}
	for _, t := range tests {
		switch t.outcome {
		case "pass":
		case "skip":
			if why := withoutShared[row]; why != "" && faultrow.Shared() {
				return noTest + why
			}
			return "**skipped**"
		case "fail":
			return "**fails**"
		default:
			return "**not ended**"
		}
	}
	return holds
}

func (r *results) rowTests(row int) string {
	var out []string
	for _, t := range r.testsOf(row) {
		for _, result := range t.results {
			if result.Row == row {
				out = append(out, fmt.Sprintf("`%s`: %s → %s", t.name, result.Injected, result.Measured))
			}
		}
		if !slices.ContainsFunc(t.results, func(result faultrow.Result) bool { return result.Row == row }) {
			out = append(out, fmt.Sprintf("`%s`", t.name))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "<br>")
}

// testsOf returns the tests of a row: tests with its number in their names, and tests with a record for it.
func (r *results) testsOf(row int) (out []*test) {
	prefix := fmt.Sprintf("TestFault%02d", row)
	for _, name := range r.order {
		t := r.byTest[name]
		if strings.HasPrefix(name, prefix) || slices.ContainsFunc(t.results, func(result faultrow.Result) bool { return result.Row == row }) {
			out = append(out, t)
		}
	}
	return out
}

// unprovenRows names the rows without a proof.
func (r *results) unprovenRows() (out []string) {
	for _, row := range faultrow.Rows() {
		if result := r.rowResult(row.Number); result != holds && !strings.HasPrefix(result, noTest) {
			out = append(out, fmt.Sprintf("row %d (%s)", row.Number, strings.Trim(result, "*")))
		}
	}
	return out
}
