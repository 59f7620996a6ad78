// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// licenceLine is the first line of every Go file.
const licenceLine = "// SPDX-License-Identifier: Apache-2.0"

// Licences checks that every Go file begins with the licence line and a blank line: without the blank line,
// godoc takes it for documentation.
func (t *Tree) Licences() (breaches []string) {
	for _, f := range t.Files {
		if !strings.HasPrefix(f.Text, licenceLine+"\n\n") {
			breaches = append(breaches, fmt.Sprintf("%s: does not begin with %q and a blank line", f.Path, licenceLine))
		}
	}
	return breaches
}

// unfinished matches marks of unfinished work. It is put together so that this file does not match.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)

// Unfinished checks that no Go file has a mark of unfinished work.
func (t *Tree) Unfinished() (breaches []string) {
	for _, f := range t.Files {
		n := 0
		for line := range strings.Lines(f.Text) {
			n++
			if mark := unfinished.FindString(line); mark != "" {
				breaches = append(breaches, fmt.Sprintf("%s:%d: %s: finish it, or say in a plain sentence what is left out and why", f.Path, n, mark))
			}
		}
	}
	return breaches
}

// PackageDocs checks that every package has exactly one package comment, and that it begins as godoc expects:
// "Package name" or, for a program, "Command name".
func (t *Tree) PackageDocs() (breaches []string) {
	type pkg struct {
		docs, testDocs []*File
		name, testName string
	}
	pkgs := map[string]*pkg{}
	for _, f := range t.Files {
		p := pkgs[f.Dir()]
		if p == nil {
			p = &pkg{}
			pkgs[f.Dir()] = p
		}
		name, docs := &p.name, &p.docs
		if f.IsTest() {
			name, docs = &p.testName, &p.testDocs
		}
		*name = f.Syntax.Name.Name
		if f.Syntax.Doc.Text() != "" {
			*docs = append(*docs, f)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(pkgs)) {
		p := pkgs[dir]
		docs := append(p.docs, p.testDocs...)
		if len(docs) != 1 {
			breaches = append(breaches, fmt.Sprintf("%s: %d package comments, want one: %s", dir, len(docs), joinPaths(docs)))
			continue
		}
		name := p.name
		if name == "" { // a folder with tests only
			name = p.testName
		}
		want := "Package " + name
		if name == "main" {
			want = "Command " + path.Base(dir)
		}
		if doc := docs[0].Syntax.Doc.Text(); !strings.HasPrefix(doc, want+" ") {
			first, _, _ := strings.Cut(doc, "\n")
			breaches = append(breaches, fmt.Sprintf("%s: the package comment begins %q, want %q", docs[0].Path, first, want))
		}
	}
	return breaches
}

func joinPaths(files []*File) string {
	var out []string
	for _, f := range files {
		out = append(out, f.Path)
	}
	return strings.Join(out, ", ")
}
