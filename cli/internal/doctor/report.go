// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"io"
)

// Severity is the severity of a finding.
type Severity string

const (
	// Error keeps the node, or an important feature, from working.
	Error Severity = "error"
	// Warning is a problem that does not break anything yet, or only for some users.
	Warning Severity = "warning"
	// Hint is not a problem: the node works, but lacks something that users may expect.
	Hint Severity = "hint"
)

// Finding is one problem.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// Problem is the problem, with its cause.
	Problem string `json:"problem"`
	// Fix is the action to take.
	Fix string `json:"fix"`
}

// Note explains why a check was skipped or did not finish.
type Note struct {
	Check string `json:"check"`
	Text  string `json:"text"`
}

// Report has the results of the checks.
type Report struct {
	Node     string    `json:"node"`
	Findings []Finding `json:"findings"`
	// Hints do not count as findings.
	Hints []Finding `json:"hints,omitempty"`
	// Passed are the checks without findings.
	Passed []string `json:"passed"`
	// Versions are the versions of the provider's programs.
	Versions []string `json:"versions,omitempty"`
	// Skipped are checks that do not apply or that lack a permission.
	Skipped []Note `json:"skipped"`
	// Unknown are unfinished checks.
	Unknown []Note `json:"unknown"`
}

// errors counts the findings other than warnings.
func (r *Report) errors() (n int) {
	for _, f := range r.Findings {
		if f.Severity != Warning {
			n++
		}
	}
	return n
}

// ExitCode returns 1 for errors, else 2 if a check did not finish, else 0, also with warnings.
func (r *Report) ExitCode() int {
	switch {
	case r.errors() > 0:
		return 1
	case len(r.Unknown) > 0:
		return 2
	}
	return 0
}

// JSON writes the report for programs.
func (r *Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	p := &printer{w: w}
	for _, name := range r.Passed {
		p.line("✓ %s", name)
	}
	for _, v := range r.Versions {
		p.line("  %s", v)
	}
	for _, n := range r.Skipped {
		p.line("- %s: not checked: %s", n.Check, n.Text)
	}
	for _, n := range r.Unknown {
		p.line("? %s: cannot be checked: %s", n.Check, n.Text)
	}
	for _, f := range r.Hints {
		p.line("· %s: %s\n  %s", f.Check, f.Problem, f.Fix)
	}
	for _, f := range r.Findings {
		mark := "✗"
		if f.Severity == Warning {
			mark = "!"
		}
		p.line("%s %s: %s\n  fix: %s", mark, f.Check, f.Problem, f.Fix)
	}
	switch n, errs := len(r.Findings), r.errors(); {
	case n > errs:
		p.line("\nnode %s: %d wrong, %d warnings", r.Node, errs, n-errs)
	case n > 0:
		p.line("\nnode %s: %d wrong", r.Node, n)
	case len(r.Unknown) > 0:
		p.line("\nnode %s: nothing found, but not everything could be checked", r.Node)
	default:
		p.line("\nnode %s: nothing found", r.Node)
	}
	return p.err
}

// printer writes text, and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}
