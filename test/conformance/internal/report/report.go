// SPDX-License-Identifier: Apache-2.0

// Package report makes a page from ginkgo's reports: one line for each test, with its reason if it did not pass.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// Report is the report of a run of one set.
type Report struct {
	Results []Result
	// Names are the names of all tests in the suite.
	Names []string
	// Procs is the number of concurrent tests, Took the total time.
	Procs int
	Took  time.Duration
}

// Result is the result of one test.
type Result struct {
	Name    string
	State   string // one of the constants below
	Reason  string // ginkgo's reason, in one line
	Seconds float64
}

// The states of a result.
const (
	Passed  = "passed"
	Alone   = "passed alone" // failed in parallel with others, and passed when it ran again alone
	Failed  = "failed"
	Skipped = "skipped"
	NotRun  = "not run"
)

// spec has some fields of a test in ginkgo's report.
type spec struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	State                   string
	RunTime                 time.Duration
	Failure                 struct{ Message string }
}

func (s spec) fullName() string {
	return strings.Join(append(append([]string(nil), s.ContainerHierarchyTexts...), s.LeafNodeText), " ")
}

// Read reads one report of ginkgo.
func Read(file string) (Report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Report{}, fmt.Errorf("read a report: %w", err)
	}
	var suites []struct {
		SuiteConfig struct{ ParallelTotal int }
		RunTime     time.Duration
		SpecReports []spec
	}
	if err := json.Unmarshal(data, &suites); err != nil {
		return Report{}, fmt.Errorf("read the report %s: %w", file, err)
	}
	var r Report
	for _, suite := range suites {
		r.Procs, r.Took = suite.SuiteConfig.ParallelTotal, r.Took+suite.RunTime
		for _, s := range suite.SpecReports {
			if s.LeafNodeType != "It" {
				continue
			}
			r.Names = append(r.Names, s.fullName())
			if result, ran := s.resultOf(); ran {
				r.Results = append(r.Results, result)
			}
		}
	}
	return r, nil
}

// resultOf returns the result of a test, or false for an unselected test: ginkgo reports it as skipped without a message.
func (s spec) resultOf() (Result, bool) {
	r := Result{Name: s.fullName(), Reason: oneLine(s.Failure.Message), Seconds: s.RunTime.Seconds()}
	switch s.State {
	case "passed":
		r.State = Passed
	case "skipped", "pending":
		r.State = Skipped
		return r, r.Reason != ""
	default: // failed, panicked, timedout, interrupted, aborted
		r.State = Failed
	}
	return r, true
}

var spaces = regexp.MustCompile(`\s+`)

// oneLine shortens the message of a test to a line of a table.
func oneLine(s string) string {
	s = strings.TrimSpace(spaces.ReplaceAllString(s, " "))
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + " …"
	}
	return s
}
