// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// results are the results of one go test.
type results struct {
	// Tests and Skipped count subtests, too.
	Tests, Skipped int
	// Passed are tests without subtests.
	Passed   []string `json:"-"`
	Failures []failure
}

// failure is one test, or one package.
type failure struct {
	Package string
	// Test has no parent. It is empty if the whole package must be repeated.
	Test   string
	Output string
	// Finding is the reason why a repeat would show nothing, or is empty.
	Finding string
}

func (f failure) fullName() string { return strings.TrimSuffix(f.Package+"."+f.Test, ".") }

// event is a line of go test -json, as go doc test2json has it.
type event struct {
	Action, Package, Test, Output, FailedBuild string
}

// pkg is a package under test.
type pkg struct {
	output  strings.Builder             // of no test
	running map[string]*strings.Builder // output of tests that have not passed
	failed  []string
}

// finding matches the output of a real failure, even if a repeat passes.
var finding = regexp.MustCompile(`WARNING: DATA RACE|race detected (during execution of test|outside of test execution)|\[rapid\] (failed|panic|flaky)`)

// allRan matches the line of a package after all its tests.
var allRan = regexp.MustCompile(`(?m)^(PASS|FAIL)$`)

// readResults reads events, and prints packages as go test does: a line for a passed package, and the failed
// tests of a failed package.
func readResults(events io.Reader, out io.Writer) (r results, err error) {
	packages := map[string]*pkg{}
	for lines := bufio.NewReader(events); ; {
		line, err := lines.ReadString('\n')
		if line == "" && errors.Is(err, io.EOF) && len(packages) == 0 {
			return r, nil
		}
		if line == "" {
			return r, fmt.Errorf("go test stopped before the tests of %v ended: %w", slices.Sorted(maps.Keys(packages)), err)
		}
		var e event
		if json.Unmarshal([]byte(line), &e) != nil {
			e = event{Output: line}
		}
		if e.Package == "" { // of the compiler
			if _, err := io.WriteString(out, e.Output); err != nil {
				return r, err
			}
			continue
		}
		p := packages[e.Package]
		if p == nil {
			p = &pkg{running: map[string]*strings.Builder{}}
			packages[e.Package] = p
		}
		if e.Test != "" {
			p.add(&r, e)
			continue
		}
		p.output.WriteString(e.Output)
		if slices.Contains([]string{"pass", "fail", "skip"}, e.Action) {
			delete(packages, e.Package)
			text := p.endPackage(&r, e)
			if _, err := io.WriteString(out, text); err != nil {
				return r, err
			}
		}
	}
}

// add reads an event of a test.
func (p *pkg) add(r *results, e event) {
	top, _, _ := strings.Cut(e.Test, "/")
	if p.running[top] == nil {
		p.running[top] = &strings.Builder{}
	}
	if e.Output != "" && !strings.HasPrefix(e.Output, "=== PAUSE") && !strings.HasPrefix(e.Output, "=== CONT") {
		p.running[top].WriteString(e.Output)
	}
	switch e.Action {
	case "skip":
		r.Skipped++
		fallthrough
	case "pass", "fail":
		r.Tests++
	}
	switch {
	case top != e.Test:
	case e.Action == "fail":
		p.failed = append(p.failed, top)
	case e.Action == "pass":
		r.Passed = append(r.Passed, top)
		if !finding.MatchString(p.running[top].String()) { // a race reported by a passed test may be the reason for the failure of the package
			delete(p.running, top)
		}
	case e.Action == "skip":
		delete(p.running, top)
	}
}

// endPackage adds the failures of an ended package, and returns its text.
func (p *pkg) endPackage(r *results, e event) string {
	own := p.output.String()
	if e.Action != "fail" {
		return own[strings.LastIndex(strings.TrimSuffix(own, "\n"), "\n")+1:] // the last line: ok, or no test files
	}
	var tests strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.running)) {
		tests.WriteString(p.running[name].String())
	}
	all := tests.String() + own
	why := ""
	switch {
	case e.FailedBuild != "":
		why = "it does not build"
	case finding.MatchString(all):
		why = "a data race or a random input was found, which is no flake"
	}
	if len(p.failed) == 0 || !allRan.MatchString(own) {
		r.Failures = append(r.Failures, failure{Package: e.Package, Output: all, Finding: why})
		return all
	}
	for _, name := range p.failed {
		r.Failures = append(r.Failures, failure{Package: e.Package, Test: name, Output: p.running[name].String(), Finding: why})
	}
	return all
}
