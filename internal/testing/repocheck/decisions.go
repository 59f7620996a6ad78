// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	decisionName = regexp.MustCompile(`^(\d{4})-[a-z0-9]+(-[a-z0-9]+)*\.md$`)
	indexRow     = regexp.MustCompile(`(?m)^\| \[.*\|$`)
)

// Decisions checks that the records in a folder are named NNNN-some-words.md, begin with a heading with the
// number, and use no number twice; and that README.md beside them has a row for each, | [N](NNNN-some-words.md)
// | heading |, and no other.
func (t *Tree) Decisions(dir string) (breaches []string, err error) {
	folder := filepath.Join(t.Root, filepath.FromSlash(dir))
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	byNumber, rows := map[string]string{}, []string{}
	for _, e := range entries {
		if e.Name() == "README.md" {
			continue
		}
		m := decisionName.FindStringSubmatch(e.Name())
		if m == nil {
			breaches = append(breaches, fmt.Sprintf("%s: want a name like 0001-what-was-decided.md", path.Join(dir, e.Name())))
			continue
		}
		number := strings.TrimLeft(m[1], "0")
		if other, taken := byNumber[number]; taken {
			breaches = append(breaches, fmt.Sprintf("%s: its number is taken by %s", path.Join(dir, e.Name()), other))
		}
		byNumber[number] = e.Name()
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		first, _, _ := strings.Cut(string(text), "\n")
		heading, numbered := strings.CutPrefix(first, "# "+number+". ")
		if !numbered {
			breaches = append(breaches, fmt.Sprintf("%s: want a first line like %q", path.Join(dir, e.Name()), "# "+number+". What was decided"))
			continue
		}
		rows = append(rows, fmt.Sprintf("| [%s](%s) | %s |", number, e.Name(), heading))
	}
	return append(breaches, compareIndex(filepath.Join(folder, "README.md"), path.Join(dir, "README.md"), rows)...), nil
}

// compareIndex compares the rows of an index with the wanted rows.
func compareIndex(file, name string, want []string) (breaches []string) {
	text, err := os.ReadFile(file)
	if err != nil {
		return []string{fmt.Sprintf("%s: want an index of the decisions: %v", name, err)}
	}
	have := indexRow.FindAllString(string(text), -1)
	for _, row := range want {
		if !slices.Contains(have, row) {
			breaches = append(breaches, fmt.Sprintf("%s: lacks the row %s", name, row))
		}
	}
	for _, row := range have {
		if !slices.Contains(want, row) {
			breaches = append(breaches, fmt.Sprintf("%s: has the row %s, which no decision has", name, row))
		}
	}
	return breaches
}
