// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// link matches the target of a Markdown link, except for URLs and anchors on the same page.
var link = regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^):\s]*)?\)`)

// Links checks that every link of a Markdown page to a file of the tree leads to a file. The links of parts are
// checked in the pages made from them.
func (t *Tree) Links(parts ...string) (breaches []string, err error) {
	err = filepath.WalkDir(t.Root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != t.Root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "dist" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".md":
			return nil
		}
		name, err := filepath.Rel(t.Root, file)
		if err != nil || slices.Contains(parts, filepath.ToSlash(name)) {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), filepath.FromSlash(m[1]))); err != nil {
				breaches = append(breaches, fmt.Sprintf("%s: links to %s, which is not there", filepath.ToSlash(name), m[1]))
			}
		}
		return nil
	})
	return breaches, err
}
