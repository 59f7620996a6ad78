// SPDX-License-Identifier: Apache-2.0

// Package securityrow is the checklist of the promises about security, and the page that names the tests of each
// promise.
//
// The guarantee: the page names every test of a promise, and every promise without a test, with the reason; a
// test of the repository compares page and tree.
//
// Note: only the name of a test selects its promise, such as TestSecurityA7StreamsNeedCreate for row A7.
package securityrow

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/repocheck"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/rowpage"
)

// Row is one promise.
type Row struct {
	// ID is a letter for the section and a number.
	ID string
	// Promise is the text of the promise.
	Promise string
	// Without is the reason why no test of this tree proves it; "" for a row that must have a test.
	Without string
}

var sections = map[byte]string{
	'A': "Who may do what",
	'B': "Certificates and identity",
	'C': "Least privilege",
	'D': "Secrets",
	'E': "Limits of the server",
	'F': "Pods and their host",
	'G': "Supply chain",
	'H': "Input from outside",
	'I': "Images and state on disk",
	'J': "Containers of provider process, of runc and of gVisor",
	'K': "The network of pods of provider process",
}

// Check returns docs/reports/security.md for the tree, and the breaches of its rules: every promise has a test
// or a reason for having none, never both, and every test names a row.
func Check(tree *repocheck.Tree) (page string, breaches []string) {
	known := map[string]bool{}
	for _, row := range rows {
		known[row.ID] = true
	}
	tests, breaches := rowpage.Proofs(tree, "TestSecurity", func(id string) bool { return known[id] })
	for _, row := range rows {
		switch has := len(tests[row.ID]) > 0; {
		case !has && row.Without == "":
			breaches = append(breaches, fmt.Sprintf("row %s (%s) has no test", row.ID, row.Promise))
		case has && row.Without != "":
			breaches = append(breaches, fmt.Sprintf("row %s has a test, and a reason for having none: remove the reason", row.ID))
		}
	}
	return renderPage(tests), breaches
}

const intro = `# Security

What is promised, and the tests that hold each promise. This page is written by ` + "`make security`" + ` after those tests have
passed; they are part of ` + "`make test`" + `, and each has the row in its name.
`

// renderPage returns the page; tests are their names, with their folders, by row.
func renderPage(tests map[string][]string) string {
	page := &rowpage.Page{Intro: intro, Columns: []string{"#", "Promise", "Tests"}}
	held, without := 0, 0
	for _, row := range rows {
		proof := cmp.Or(strings.Join(tests[row.ID], "<br>"), row.Without, "**none**")
		switch {
		case len(tests[row.ID]) > 0:
			held++
		case row.Without != "":
			without++
		}
		page.Add(fmt.Sprintf("%c. %s", row.ID[0], sections[row.ID[0]]), row.ID, row.Promise, proof)
	}
	return page.Markdown(fmt.Sprintf("%d of %d rows are held by tests; %d have none, for the reason that stands there.", held, len(rows), without))
}
