// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// OtherSections is the place of sections without a place in the order.
const OtherSections = "…"

// Sections checks that the README of each provider, and of each further folder, has its sections in this order.
// A section may be missing, unless it is needed. Sections outside of the order stand at OtherSections.
func (t *Tree) Sections(s Shape, further, order []string, needed ...string) (breaches []string) {
	var dirs []string
	for _, name := range t.providerFolders(s.Dir, s.Emulators) {
		dirs = append(dirs, path.Join(s.Dir, name))
	}
	for _, dir := range slices.Concat(dirs, further) {
		file := path.Join(dir, "README.md")
		text, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(file)))
		if err != nil {
			if slices.Contains(further, dir) {
				breaches = append(breaches, err.Error())
			}
			continue // Providers reports this file
		}
		sections := sectionsOf(string(text))
		before, at := "", -1
		for _, section := range sections {
			i := slices.Index(order, section)
			if i < 0 {
				i = slices.Index(order, OtherSections)
			}
			switch {
			case i < at:
				breaches = append(breaches, fmt.Sprintf("%s: section %q stands after %q: the order is %s, and sections of other names stand at %s", file, section, before, strings.Join(order, ", "), OtherSections))
			case i == at && order[i] != OtherSections:
				breaches = append(breaches, fmt.Sprintf("%s: has the section %q twice", file, section))
			default:
				before, at = section, i
			}
		}
		for _, section := range needed {
			if !slices.Contains(sections, section) {
				breaches = append(breaches, fmt.Sprintf("%s: lacks the section %q", file, section))
			}
		}
	}
	return breaches
}

// sectionsOf returns the titles of the second level of a page, without similar lines of code.
func sectionsOf(text string) (titles []string) {
	code := false
	for line := range strings.Lines(text) {
		title, is := strings.CutPrefix(strings.TrimSpace(line), "## ")
		switch {
		case strings.HasPrefix(line, "```"):
			code = !code
		case is && !code:
			titles = append(titles, title)
		}
	}
	return titles
}
