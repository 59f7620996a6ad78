// SPDX-License-Identifier: Apache-2.0

package rowpage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/rowpage"
)

func TestPage(t *testing.T) {
	p := &rowpage.Page{Intro: "# Rows\n\nWhat holds.\n", Columns: []string{"#", "Row"}}
	p.Add("First", "1", "a | b")
	p.Add("First", "2", "c\nd")
	p.Add("Second", "3", "e")
	want := "# Rows\n\nWhat holds.\n\n3 of 3.\n\n## First\n\n| # | Row |\n|---|---|\n| 1 | a \\| b |\n| 2 | c d |\n\n## Second\n\n| # | Row |\n|---|---|\n| 3 | e |\n"
	if diff := cmp.Diff(want, p.Markdown("3 of 3.")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRowOf(t *testing.T) {
	for test, want := range map[string]string{
		"TestSecurityA7StreamsNeedCreate": "A7",
		"TestSecurityA11Audit":            "A11",
		"TestSecurityOfStreams":           "",
		"TestA7":                          "",
	} {
		if got := rowpage.RowOf(test, "TestSecurity"); got != want {
			t.Errorf("RowOf(%q) = %q, want %q", test, got, want)
		}
	}
}
