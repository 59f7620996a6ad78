// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/test/conformance/internal/report"
	"github.com/virtual-kubelet/virtual-kubelet/test/conformance/internal/suite"
)

// reportOf returns a report of ginkgo with a single test.
func reportOf(name, state string) string {
	return `[{"SpecReports": [{"LeafNodeType": "It", "LeafNodeText": "` + name + `", "State": "` + state + `"}]}]`
}

func writeReports(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWhatRanAgainIsReadUntilAnotherRun(t *testing.T) {
	o := options{sets: "conformance", results: writeReports(t, map[string]string{
		"conformance.json": reportOf("a", "failed"), "again.json": reportOf("a", "passed"), "known.tsv": "b\tit is slow\n",
	})}
	o.known = filepath.Join(o.results, "known.tsv")
	runs, results, err := o.readAll(o.results)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 2 || len(results) != 1 || results[0].State != report.Alone {
		t.Errorf("got %d runs and %+v, want two runs, and one test that passed alone", len(runs), results)
	}
	if names, err := o.failedTests(); err != nil || len(names) != 1 {
		t.Errorf("got the failures %q, %v; want the one of the first run", names, err)
	}
	if err := o.forgetAgain(); err != nil {
		t.Fatal(err)
	}
	if _, results, err = o.readAll(o.results); err != nil || results[0].State != report.Failed {
		t.Errorf("after another run: got %+v, %v; want a test that failed", results, err)
	}
}

func TestTestsThatDisturbOthersRunOneByOne(t *testing.T) {
	o := options{procs: 8}
	for name, want := range map[string]int{"conformance": 8, "conformance-serial": 1} {
		if got := o.changeSet(suite.Sets()[name]).Procs; got != want {
			t.Errorf("set %s: got %d at a time, want %d", name, got, want)
		}
	}
}

func TestNothingRunsAgainWithoutAFailure(t *testing.T) {
	for name, report := range map[string]string{"it passed": reportOf("a", "passed"), "the failure is known": reportOf("b", "failed")} {
		o := options{sets: "conformance", results: writeReports(t, map[string]string{"conformance.json": report, "known.tsv": "b\tit is slow\n"})}
		o.known = filepath.Join(o.results, "known.tsv")
		if names, err := o.failedTests(); err == nil {
			t.Errorf("%s: got %q and no error, want one that says that there is nothing to do", name, names)
		}
	}
}

func TestAKubeletMayHaveRunSomeOfTheSets(t *testing.T) {
	o := options{sets: "conformance,conformance-serial", beside: writeReports(t, map[string]string{"conformance.json": reportOf("a", "passed")})}
	got, err := o.readBeside()
	if err != nil || got == nil || len(got.Results) != 1 {
		t.Errorf("got %+v, %v; want the one result", got, err)
	}
	for _, dir := range []string{t.TempDir(), ""} {
		o.beside = dir
		if got, err := o.readBeside(); err != nil || got != nil {
			t.Errorf("without reports in %q: got %+v, %v; want nothing", dir, got, err)
		}
	}
}
