// SPDX-License-Identifier: Apache-2.0

// Package fieldrow is the table of published plugins, files, pods and monitoring for use with this project, and
// the page docs/reports/field.md with the tests of each.
//
// The guarantee: the page names the public source of each row and its tests; a test of the repository compares
// page and tree.
//
// Note: only the name of a test selects its row, such as TestPublishedA1UnknownPodOfThePlugin for row
// A1.
package fieldrow

import (
	"fmt"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/repocheck"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/rowpage"
)

// Row is one published thing: a plugin, a file, a pod, an issue.
type Row struct {
	// ID is the letter of the section and a number.
	ID string
	// Source is the place of publication: an issue as owner/repository#number, a file as owner/repository: path,
	// a page by its name.
	Source string
	// Expects is the expected result of the source's users.
	Expects string
	// Ours is the behaviour of this project.
	Ours string
	// Since is the first date, YYYY-MM-DD, with passed tests of the row.
	Since string
}

// prefix begins the name of each test of a row.
const prefix = "TestPublished"

var sections = []struct {
	name string
	rows []Row
}{
	{"A. interLink and its plugins", interlink},
	{"B. The node in a cluster", node},
	{"C. Rules of services between values", rules},
	{"D. Files and command lines of other providers", migration},
}

// Check returns docs/reports/field.md for the tree, and the broken rules: each row has a test, and each test a
// row.
func Check(tree *repocheck.Tree) (page string, breaches []string) {
	known := map[string]bool{}
	for _, section := range sections {
		for _, row := range section.rows {
			known[row.ID] = true
		}
	}
	tests, breaches := rowpage.Proofs(tree, prefix, func(id string) bool { return known[id] })
	for _, section := range sections {
		for _, row := range section.rows {
			if len(tests[row.ID]) == 0 {
				breaches = append(breaches, fmt.Sprintf("row %s (%s) has no test", row.ID, row.Source))
			}
		}
	}
	return renderPage(tests), breaches
}

const intro = `# What others wrote

Published plugins, files, pods, issues and monitoring of others, and how they fare with this project. ` + "`make field`" + ` writes this page
from the names of the tests. The tests are part of ` + "`make test`" + `, and each has its row in its name.
`

// renderPage returns the page; tests are their names, with their folders, by row.
func renderPage(tests map[string][]string) string {
	page := &rowpage.Page{Intro: intro, Columns: []string{"#", "Source", "Users expect", "Ours", "Since", "Tests"}}
	rows := 0
	for _, section := range sections {
		for _, row := range section.rows {
			rows++
			page.Add(section.name, row.ID, row.Source, row.Expects, row.Ours, row.Since, strings.Join(tests[row.ID], "<br>"))
		}
	}
	return page.Markdown(fmt.Sprintf("%d rows.", rows))
}
