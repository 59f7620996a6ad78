// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const ginkgoReport = `[{"SuiteConfig": {"ParallelTotal": 8}, "RunTime": 1860000000000, "SpecReports": [
 {"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It", "LeafNodeText": "run [Conformance]", "State": "passed", "RunTime": 2000000000},
 {"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It", "LeafNodeText": "fail [NodeConformance]", "State": "timedout", "Failure": {"Message": "too\n  late | <ever>"}},
 {"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It", "LeafNodeText": "need a GPU [NodeConformance]", "State": "skipped", "Failure": {"Message": "no GPU"}},
 {"ContainerHierarchyTexts": ["[sig-apps] Jobs"], "LeafNodeType": "It", "LeafNodeText": "not selected", "State": "skipped"},
 {"LeafNodeType": "ReportAfterSuite", "LeafNodeText": "", "State": "passed"}
]}]`

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T) Report {
	t.Helper()
	r, err := Read(write(t, ginkgoReport))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRead(t *testing.T) {
	r := read(t)
	want := []Result{
		{"[sig-node] Pods run [Conformance]", Passed, "", 2},
		{"[sig-node] Pods fail [NodeConformance]", Failed, "too late | <ever>", 0},
		{"[sig-node] Pods need a GPU [NodeConformance]", Skipped, "no GPU", 0},
	}
	if !slices.Equal(r.Results, want) {
		t.Errorf("got %+v\nwant %+v", r.Results, want)
	}
	if len(r.Names) != 4 {
		t.Errorf("got %d names, want those of the 4 tests of the suite: %q", len(r.Names), r.Names)
	}
	if r.Procs != 8 || r.Took != 31*time.Minute {
		t.Errorf("got %d at a time in %s, want 8 in 31m", r.Procs, r.Took)
	}
}

func TestMergeKeepsAFailure(t *testing.T) {
	failed, passed := Result{Name: "a", State: Failed}, Result{Name: "a", State: Passed}
	for _, sets := range [][][]Result{{{failed}, {passed}}, {{passed}, {failed}}} {
		if got := Merge(sets...); len(got) != 1 || got[0].State != Failed {
			t.Errorf("got %+v, want one test that failed", got)
		}
	}
}

func TestMergeKeepsWhatRan(t *testing.T) {
	passed, notRun := Result{Name: "a", State: Passed}, Result{Name: "a", State: NotRun}
	for _, sets := range [][][]Result{{{passed, notRun}}, {{notRun}, {passed}}} {
		if got := Merge(sets...); len(got) != 1 || got[0].State != Passed {
			t.Errorf("got %+v, want one test that passed", got)
		}
	}
}

func TestPage(t *testing.T) {
	page := Page{Head: "# Head\n", Results: Merge(read(t).Results), Parts: []Part{
		{Title: "Nodes", Groups: []string{"node", "storage"}, Tags: []string{"NodeConformance"}},
		{Title: "Others", Groups: []string{"apps"}},
	}}
	if got := page.Unexplained(); !slices.Equal(got, []string{"[sig-node] Pods fail [NodeConformance]"}) {
		t.Errorf("without reasons: got %q, want the test that failed", got)
	}
	var err error
	if page.Known, err = ReadKnown(write(t, "# comment\nPods fail\tit is slow\n")); err != nil {
		t.Fatal(err)
	}
	if got := page.Unexplained(); len(got) != 0 {
		t.Errorf("with a reason: got %q, want none", got)
	}
	text := page.String() + page.Table()
	for _, want := range []string{
		"### Nodes\n", "| `[sig-node]` | 1 | 1 | 1 | 0 |\n", "| those with `[NodeConformance]` | 0 | 1 | 1 | 0 |\n", "| **together** | 1 | 1 | 1 | 0 |\n",
		"| \\[sig-node\\] Pods fail \\[NodeConformance\\] | failed | it is slow |\n",
		"| \\[sig-node\\] Pods need a GPU \\[NodeConformance\\] | skipped | no GPU |\n",
		"[sig-node] Pods run [Conformance]\tpassed\t2\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in the page:\n%s", want, text)
		}
	}
	if strings.Contains(page.String(), "sig-storage") {
		t.Errorf("a group has a row, and none of its tests ran:\n%s", text)
	}
}

func TestPageCountsWhatIsNotRunByItsReason(t *testing.T) {
	results := []Result{{Name: "[sig-node] a (long)", State: NotRun}, {Name: "[sig-node] b (long)", State: NotRun}}
	known, err := ReadKnown(write(t, "(long)\tit takes an hour\n"))
	if err != nil {
		t.Fatal(err)
	}
	text := Page{Results: results, Known: known}.String()
	if want := "| 2 with (long) in their names | not run | it takes an hour |\n"; !strings.Contains(text, want) {
		t.Errorf("want %q in the page:\n%s", want, text)
	}
	if got := strings.Count(text, "hour"); got != 1 {
		t.Errorf("the reason is there %d times, want it once:\n%s", got, text)
	}
}

func TestPageCountsTestsThatNeedANetworkApart(t *testing.T) {
	results := []Result{{Name: "[sig-node] Probes ask (http)", State: Failed}, {Name: "[sig-node] Pods run", State: Passed}}
	isolated, err := ParseKnown("(http)\ta probe asks a port\n")
	if err != nil {
		t.Fatal(err)
	}
	text := Page{Results: results, Parts: []Part{{Title: "Nodes", Groups: []string{"node"}, Isolated: isolated}}}.String()
	for _, want := range []string{
		"| those that need a network for each pod | 0 | 1 | 0 | 0 |\n", "| those that need none | 1 | 0 | 0 | 0 |\n", "| (http) | 1 | a probe asks a port |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in the page:\n%s", want, text)
		}
	}
	if got := isolated.Pattern(); got != `\(http\)` {
		t.Errorf("got the pattern %s, want one that matches the parts as they are", got)
	}
}

func TestReasonsNeedATab(t *testing.T) {
	if _, err := ReadKnown(write(t, "Pods fail because\n")); err == nil {
		t.Error("a line without a tab: got no error")
	}
}
