// SPDX-License-Identifier: Apache-2.0

// Package rowpage writes pages of rows proven by tests: faults survived by a node, or promises about security.
package rowpage

import (
	"fmt"
	"strings"
)

// Page is a page in the making.
type Page struct {
	// Intro is the heading of the page, and its introduction.
	Intro string
	// Columns are the columns of each section's table.
	Columns  []string
	sections []section
}

type section struct {
	name string
	rows [][]string
}

// Add adds a row to a section. The section begins with its first row.
func (p *Page) Add(name string, cells ...string) {
	if n := len(p.sections); n == 0 || p.sections[n-1].name != name {
		p.sections = append(p.sections, section{name: name})
	}
	last := &p.sections[len(p.sections)-1]
	last.rows = append(last.rows, cells)
}

// cell escapes text for a cell of a table.
var cell = strings.NewReplacer("|", "\\|", "\n", " ")

// Markdown returns the page. The summary has the number of proven rows.
func (p *Page) Markdown(summary string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", strings.TrimSpace(p.Intro), summary)
	for _, s := range p.sections {
		fmt.Fprintf(&b, "\n## %s\n\n| %s |\n%s|\n", s.name, strings.Join(p.Columns, " | "), strings.Repeat("|---", len(p.Columns)))
		for _, row := range s.rows {
			for _, text := range row {
				fmt.Fprintf(&b, "| %s ", cell.Replace(text))
			}
			b.WriteString("|\n")
		}
	}
	return b.String()
}
