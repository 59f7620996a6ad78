// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/test/conformance/internal/report"
	"github.com/virtual-kubelet/virtual-kubelet/test/conformance/internal/suite"
)

// readSets reads the reports of the sets from a directory, and adds the excluded tests.
func (o *options) readSets(dir string) (runs []report.Run, merged []report.Result, err error) {
	notRun := regexp.MustCompile(suite.NotRun)
	if o.network == "machine" {
		notRun = regexp.MustCompile(eitherPattern(suite.NotRun, isolated.Pattern()))
	}
	var sets [][]report.Result
	for name := range strings.SplitSeq(o.sets, ",") {
		r, err := report.Read(filepath.Join(dir, name+".json"))
		if err != nil {
			return nil, nil, err
		}
		runs = append(runs, report.Run{Set: name, Report: r})
		results, selected := r.Results, regexp.MustCompile(suite.Sets()[name].Focus)
		for _, test := range r.Names {
			if selected.MatchString(test) && notRun.MatchString(test) {
				results = append(results, report.Result{Name: test, State: report.NotRun})
			}
		}
		sets = append(sets, results)
	}
	return runs, report.Merge(sets...), nil
}

// readAll returns the results of readSets, with the results of repeated tests, if there are any.
func (o *options) readAll(dir string) (runs []report.Run, results []report.Result, err error) {
	runs, results, err = o.readSets(dir)
	if err != nil {
		return nil, nil, err
	}
	again, err := report.Read(againFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return runs, results, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return append(runs, report.Run{Set: suite.AgainName, Report: again}), report.WithAgain(results, again.Results), nil
}

// readBeside returns the results of a kubelet with its sets, or nil if there are none.
func (o *options) readBeside() (*report.Beside, error) {
	if o.beside == "" {
		return nil, nil
	}
	ran := *o
	var sets []string
	for name := range strings.SplitSeq(o.sets, ",") {
		if _, err := os.Stat(filepath.Join(o.beside, name+".json")); err == nil {
			sets = append(sets, name)
		}
	}
	if len(sets) == 0 {
		printLine("no comparison: there are no reports of a kubelet in %q", o.beside)
		return nil, nil
	}
	ran.sets = strings.Join(sets, ",")
	_, results, err := ran.readAll(o.beside)
	if err != nil {
		return nil, err
	}
	return &report.Beside{Who: "two kubelets", Results: results}, nil
}

// failedTests returns the names of the failed tests without a known reason in the last run of the sets.
func (o *options) failedTests() ([]string, error) {
	known, err := report.ReadKnown(o.known)
	if err != nil {
		return nil, err
	}
	_, results, err := o.readSets(o.results)
	if err != nil {
		return nil, err
	}
	names := report.Page{Results: results, Known: known}.Unexplained()
	if len(names) == 0 {
		return nil, fmt.Errorf("in the last run no test failed but those in %s, so none runs again", o.known)
	}
	return names, nil
}

// forgetAgain removes the results of repeated tests of an earlier run.
func (o *options) forgetAgain() error {
	if err := os.Remove(againFile(o.results)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove an old report: %w", err)
	}
	return nil
}

func againFile(dir string) string { return filepath.Join(dir, suite.AgainName+".json") }
