// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Archived is a module archived by its authors: its bugs stay unfixed.
type Archived struct {
	Module string
	// Since is the date of the archiving, and Seen the place where it is written.
	Since, Seen string
	// By are the importing modules of the shipped programs; it may be empty.
	By []string
	// Why is the reason for these imports, and Instead the replacement.
	Why, Instead string
}

// Archived compares the rows with the modules of the packages in the shipped folders. A module of a row may be
// imported only by the modules in the row. No go.mod of the tree may require one directly without a reason.
func (t *Tree) Archived(ctx context.Context, rows []Archived, shipped ...string) (breaches []string, err error) {
	importers := map[string]map[string]bool{}
	for _, dir := range shipped {
		if err := t.addImporters(ctx, importers, dir); err != nil {
			return nil, err
		}
	}
	for _, row := range rows {
		by := slices.Sorted(maps.Keys(importers[row.Module]))
		switch {
		case len(by) == 0 && len(row.By) > 0:
			breaches = append(breaches, fmt.Sprintf("%s is in no build any more: remove By and Why from its row", row.Module))
		case len(by) > 0 && row.Why == "":
			breaches = append(breaches, fmt.Sprintf("%s is imported by %s and archived since %s: replace it by %s, or give the reason in its row",
				row.Module, strings.Join(by, ", "), row.Since, row.Instead))
		case !slices.Equal(by, row.By):
			breaches = append(breaches, fmt.Sprintf("%s is imported by %s, its row has %s", row.Module, strings.Join(by, ", "), strings.Join(row.By, ", ")))
		}
		for _, dir := range slices.Sorted(maps.Keys(t.Modules)) {
			for _, req := range t.Modules[dir].Require {
				if req.Mod.Path == row.Module && !req.Indirect && row.Why == "" {
					breaches = append(breaches, fmt.Sprintf("%s: requires %s, which is archived since %s: replace it by %s", path.Join(dir, "go.mod"), row.Module, row.Since, row.Instead))
				}
			}
		}
	}
	return breaches, nil
}

// addImporters adds the importers of each module, as they are built in a folder without tests.
func (t *Tree) addImporters(ctx context.Context, importers map[string]map[string]bool, dir string) error {
	out, err := t.list(ctx, dir, `{{with .Module}}{{.Path}} {{$.ImportPath}} {{join $.Imports " "}}{{end}}`, "./...")
	if err != nil {
		return err
	}
	moduleOf, imports := map[string]string{}, map[string][]string{}
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 0 {
			moduleOf[fields[1]] = fields[0]
			imports[fields[0]] = append(imports[fields[0]], fields[2:]...)
		}
	}
	for importer, packages := range imports {
		for _, p := range packages {
			module := moduleOf[p]
			if importers[module] == nil {
				importers[module] = map[string]bool{}
			}
			if module != importer {
				importers[module][importer] = true
			}
		}
	}
	return nil
}
