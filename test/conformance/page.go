// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/test/conformance/internal/report"
)

// head is the page before the results.
//
//go:embed page.md
var head string

// headOfProcess is the text for the provider process, and headOfRunc for the provider process on runc.
var (
	//go:embed page-process.md
	headOfProcess string
	//go:embed page-process-runc.md
	headOfRunc string
)

// headOfTwo is the text for two nodes.
//
//go:embed page-two-nodes.md
var headOfTwo string

//go:embed isolation.tsv
var isolation string

// isolated are the tests for a network per pod, by their requirements and not by their results.
var isolated = func() report.Known {
	known, err := report.ParseKnown(isolation)
	if err != nil {
		panic(err) // the file is part of the program
	}
	return known
}()

// writePage writes the page from the reports of the sets. It prints the failed tests without a known reason.
func (o *options) writePage() error {
	known, err := report.ReadKnown(o.known)
	if err != nil {
		return err
	}
	runs, results, err := o.readAll(o.results)
	if err != nil {
		return err
	}
	page := report.Page{Head: head, Parts: pageParts(), Results: results, Known: known}
	switch {
	case o.nodes == 2:
		page.Head, page.Parts, page.Runs = headOfTwo, []report.Part{wholeList}, runs
		if page.Beside, err = o.readBeside(); err != nil {
			return err
		}
	case o.provider == "process":
		page.Head, page.Parts[0].Isolated = headOfProcess, isolated
		if o.runtime == "runc" {
			page.Head = headOfRunc
		}
	}
	if o.nodes == 1 && o.sets != allSets {
		page.Head += "\nOf the sets " + joinNames(allSets) + " this run had " + joinNames(o.sets) + ".\n"
	}
	printLine("%s", page.Summary())
	if o.report != "" {
		table := strings.TrimSuffix(o.report, ".md") + ".tsv"
		page.Head += "\nEvery test with its result is in [" + filepath.Base(table) + "](" + filepath.Base(table) + ").\n"
		if err := errors.Join(os.WriteFile(o.report, []byte(page.String()), 0o644), os.WriteFile(table, []byte(page.Table()), 0o644)); err != nil {
			return fmt.Errorf("write the page: %w", err)
		}
	}
	if names := page.Unexplained(); len(names) > 0 {
		return errors.New("these tests failed, and " + o.known + " has no reason for them:\n  " + strings.Join(names, "\n  "))
	}
	if len(page.Results) == 0 {
		return errors.New("no test ran; see the logs in " + o.results)
	}
	return nil
}

// joinNames joins names for a sentence.
func joinNames(names string) string {
	all := strings.Split(names, ",")
	for i := range all {
		all[i] = "`" + all[i] + "`"
	}
	last := len(all) - 1
	if last == 0 {
		return all[0]
	}
	return strings.Join(all[:last], ", ") + " and " + all[last]
}

// wholeList is the table of totals of all conformance tests.
var wholeList = report.Part{Title: "The whole list", Groups: []string{
	"api-machinery", "apps", "architecture", "auth", "cli", "instrumentation", "network", "node", "scheduling", "storage",
}}

// pageParts returns the tables of totals: first the decisions of a node itself, then its work for a cluster.
func pageParts() []report.Part {
	return []report.Part{
		{Title: "The node itself", Groups: []string{"node", "storage"}, Tags: []string{"Conformance", "NodeConformance"}},
		{Title: "What a cluster does with it", Groups: []string{"network", "apps", "cli", "scheduling", "instrumentation", "auth", "api-machinery"}},
	}
}
