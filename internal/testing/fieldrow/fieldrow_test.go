// SPDX-License-Identifier: Apache-2.0

package fieldrow

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/repocheck"
)

func TestEveryRowIsTestedAndReported(t *testing.T) {
	tree, err := repocheck.Load("../../..")
	if err != nil {
		t.Fatal(err)
	}
	page, breaches := Check(tree)
	for _, breach := range breaches {
		t.Error(breach)
	}
	written, err := os.ReadFile("../../../docs/reports/field.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != page {
		t.Error("docs/reports/field.md is not that of this tree: run `make field`")
	}
}

var date = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)

func TestRowsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, section := range sections {
		for _, row := range section.rows {
			if !strings.HasPrefix(section.name, row.ID[:1]+".") || seen[row.ID] {
				t.Errorf("row %s stands in section %q, or twice", row.ID, section.name)
			}
			if row.Source == "" || row.Expects == "" || row.Ours == "" || !date.MatchString(row.Since) {
				t.Errorf("row %s lacks a source, an expectation, a behaviour or a date: %+v", row.ID, row)
			}
			seen[row.ID] = true
		}
	}
}
