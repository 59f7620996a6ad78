// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const someRun = `{"Action":"run","Package":"p","Test":"TestFault05Twins"}
not an event
{"Action":"attr","Package":"p","Test":"TestFault05Twins","Key":"fault-row","Value":"{\"row\":5,\"injected\":\"100 rounds\",\"measured\":\"0 | doubles\"}"}
{"Action":"pass","Package":"p","Test":"TestFault05Twins"}
{"Action":"run","Package":"p","Test":"TestFault06Panics"}
{"Action":"run","Package":"p","Test":"TestFault06Panics/create"}
{"Action":"skip","Package":"p","Test":"TestFault06Panics/create"}
{"Action":"run","Package":"p","Test":"TestFault07Hangs"}
{"Action":"fail","Package":"p","Test":"TestFault07Hangs"}
{"Action":"run","Package":"p","Test":"TestFault08Memory"}
{"Action":"run","Package":"p","Test":"TestOther"}
{"Action":"pass","Package":"p","Test":"TestOther"}
`

func TestReportTellsWhatDoesNotHold(t *testing.T) {
	out := filepath.Join(t.TempDir(), "faults.md")
	err := reportFaults(strings.NewReader(someRun), out, nil)
	if err == nil {
		t.Fatal("a matrix with failed, skipped and missing tests was taken for proven")
	}
	for _, want := range []string{"row 6 (skipped)", "row 7 (fails)", "row 8 (not ended)", "row 9 (no test)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	for _, not := range []string{"row 5 ", "row 46", "row 49"} {
		if strings.Contains(err.Error(), not) {
			t.Errorf("the error names %q: %v", not, err)
		}
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"`TestFault05Twins`: 100 rounds → 0 \\| doubles", "| holds |", "1 of 61 rows hold, by 4 tests"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

// TestSharedNodesNeedNoTestOfTheirOwnCertificates: the row needs no proof if its test was skipped and the nodes
// are shared.
func TestSharedNodesNeedNoTestOfTheirOwnCertificates(t *testing.T) {
	for _, c := range []struct {
		shared, outcome string
		unproven        string // "": the row needs no test
	}{
		{"1", "skip", ""},
		{"1", "fail", "row 23 (fails)"},
		{"", "skip", "row 23 (skipped)"},
	} {
		t.Setenv("VK_FAULTS_SHARED", c.shared)
		run := `{"Action":"run","Package":"p","Test":"TestFault23Rotated"}` + "\n" + `{"Action":"` + c.outcome + `","Package":"p","Test":"TestFault23Rotated"}`
		err := reportFaults(strings.NewReader(run), filepath.Join(t.TempDir(), "faults.md"), nil)
		if err == nil {
			t.Fatal("a matrix without tests was taken for proven")
		}
		if want := cmp.Or(c.unproven, "row 23"); strings.Contains(err.Error(), want) != (c.unproven != "") {
			t.Errorf("shared %q, %s: got %v, want %q", c.shared, c.outcome, err, c.unproven)
		}
	}
}

func TestLastRunCounts(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "1"), filepath.Join(dir, "2")
	again := strings.ReplaceAll(someRun, `"fail"`, `"pass"`)
	if err := os.WriteFile(first, []byte(someRun), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(second, []byte(again), 0o600); err != nil {
		t.Fatal(err)
	}
	err := reportFaults(nil, filepath.Join(dir, "out.md"), []string{first, second})
	if err == nil || strings.Contains(err.Error(), "row 7 ") {
		t.Errorf("the second run's pass does not count: %v", err)
	}
}
