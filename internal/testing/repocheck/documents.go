// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	codeSpan   = regexp.MustCompile("`([^`\n]+)`")
	makeTarget = regexp.MustCompile(`(?m)^([A-Za-z0-9][\w./ -]*):($|[^=])`)
	makeCall   = regexp.MustCompile(`(?:^|&&|;)\s*(?:\$\s+)?(?:\w+=\S+\s+)*make((?:\s+[^\s;&|)]+)*)`)
)

// codeLines returns the code of a Markdown text: the lines of fenced blocks, without comments, and the spans in the
// prose.
func codeLines(markdown string) (lines []string) {
	fenced := false
	for line := range strings.Lines(markdown) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case fenced:
			command, _, _ := strings.Cut(line, " #")
			lines = append(lines, command)
		default:
			for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
				lines = append(lines, m[1])
			}
		}
	}
	return lines
}

// MakeTargets checks that every make target in a document is in the Makefile.
func (t *Tree) MakeTargets(documents ...string) (breaches []string, err error) {
	makefile, err := os.ReadFile(filepath.Join(t.Root, "Makefile"))
	if err != nil {
		return nil, err
	}
	var targets []string
	for _, m := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, strings.Fields(m[1])...)
	}
	for _, document := range documents {
		text, err := os.ReadFile(filepath.Join(t.Root, document))
		if err != nil {
			return nil, err
		}
		for _, line := range codeLines(string(text)) {
			for _, m := range makeCall.FindAllStringSubmatch(line, -1) {
				for _, arg := range strings.Fields(m[1]) {
					isTarget := !strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=")
					if isTarget && !slices.Contains(targets, arg) {
						breaches = append(breaches, fmt.Sprintf("%s: says `make %s`, which is no target of the Makefile", document, arg))
					}
				}
			}
		}
	}
	return breaches, nil
}

// fileName matches a path of a file of the tree in a document. A path with a placeholder in capitals is no file.
var fileName = regexp.MustCompile(`^[a-z][a-z0-9_.-]*/(?:[a-z0-9_.-]+/)*[a-z0-9_.-]+\.(?:go|md|yaml|proto)$`)

// NamedFiles checks the existence of files with a path in the code of documents.
func (t *Tree) NamedFiles(documents ...string) (breaches []string, err error) {
	for _, document := range documents {
		text, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(document)))
		if err != nil {
			return nil, err
		}
		for _, line := range codeLines(string(text)) {
			for _, word := range strings.Fields(line) {
				file := strings.Trim(word, "(),;:")
				if !fileName.MatchString(file) {
					continue
				}
				if info, err := os.Stat(filepath.Join(t.Root, filepath.FromSlash(file))); err != nil || info.IsDir() {
					breaches = append(breaches, fmt.Sprintf("%s: names the file %s, which is not there", document, file))
				}
			}
		}
	}
	return breaches, nil
}

// folderName matches a path of a folder of the tree in a document: relative, of plain names, with a slash at the
// end.
var folderName = regexp.MustCompile(`^[A-Za-z][\w.-]*/(?:[\w.-]+/)*$`)

// Map checks that a document names every top-level folder with Go files, and no missing folder. Folders are
// named in code, with a final slash; a path with a placeholder is ignored.
func (t *Tree) Map(document string) (breaches []string, err error) {
	text, err := os.ReadFile(filepath.Join(t.Root, document))
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, line := range codeLines(string(text)) {
		for _, word := range strings.Fields(line) {
			folder := strings.Trim(word, "(),;:")
			if !folderName.MatchString(folder) {
				continue
			}
			top, _, _ := strings.Cut(folder, "/")
			named[top] = true
			if info, err := os.Stat(filepath.Join(t.Root, filepath.FromSlash(folder))); err != nil || !info.IsDir() {
				breaches = append(breaches, fmt.Sprintf("%s: names the folder %s, which is not there", document, folder))
			}
		}
	}
	for _, f := range t.Files {
		if top, _, below := strings.Cut(f.Path, "/"); below && !named[top] {
			named[top] = true
			breaches = append(breaches, fmt.Sprintf("%s: does not name the folder %s/ (as code, with the slash)", document, top))
		}
	}
	return breaches, nil
}
