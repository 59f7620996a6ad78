// SPDX-License-Identifier: Apache-2.0

package securityrow

import (
	"os"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/repocheck"
)

func TestEveryPromiseIsTestedAndReported(t *testing.T) {
	tree, err := repocheck.Load("../../..")
	if err != nil {
		t.Fatal(err)
	}
	page, breaches := Check(tree)
	for _, breach := range breaches {
		t.Error(breach)
	}
	written, err := os.ReadFile("../../../docs/reports/security.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != page {
		t.Error("docs/reports/security.md is not that of this tree: run `make security`")
	}
}

func TestPageNamesWhatIsMissing(t *testing.T) {
	page := renderPage(map[string][]string{"A1": {"`TestSecurityA1NoDoorOpensByItself` (node/nodeutil)"}})
	for _, want := range []string{"TestSecurityA1NoDoorOpensByItself", "| A2 | ", "**none**", "1 of "} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestRowsAreInSections(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range rows {
		if sections[row.ID[0]] == "" || seen[row.ID] || row.Promise == "" {
			t.Errorf("row %q has no section, no promise, or stands twice", row.ID)
		}
		seen[row.ID] = true
	}
}
