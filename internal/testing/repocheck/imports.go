// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// Direction limits the imports of some packages. Patterns are folders, with a final /... for everything below.
type Direction struct {
	// Packages is the pattern of the packages under the rule.
	Packages string
	// May lists patterns of this repository's packages. Packages matched by the
	// same rule may import each other.
	May []string
	// Outside, if not nil, lists the only import path prefixes allowed beyond this
	// repository and the standard library.
	Outside []string
	// Why is the reason of the rule.
	Why string
}

// ImportDirections checks the imports of every package against the first matching direction. Tests may import
// anything. A package without a matching direction is a breach too.
func (t *Tree) ImportDirections(directions []Direction) (breaches []string) {
	for _, f := range t.Files {
		if f.IsTest() {
			continue
		}
		i := slices.IndexFunc(directions, func(d Direction) bool { return matchesPattern(d.Packages, f.Dir()) })
		if i < 0 {
			breaches = append(breaches, fmt.Sprintf("%s: no import direction covers folder %s; add one with its reason", f.Path, f.Dir()))
			continue
		}
		for _, spec := range f.Syntax.Imports {
			if d := directions[i]; !t.isAllowed(d, importPath(spec)) {
				breaches = append(breaches, fmt.Sprintf("%s: %s must not import %s: %s", f.placeOf(spec), d.Packages, importPath(spec), d.Why))
			}
		}
	}
	return breaches
}

func (t *Tree) isAllowed(d Direction, importPath string) bool {
	if folder, ours := t.folderOf(importPath); ours {
		return matchesPattern(d.Packages, folder) || matchesAny(d.May, folder)
	}
	first, _, _ := strings.Cut(importPath, "/")
	if d.Outside == nil || !strings.Contains(first, ".") {
		return true
	}
	return slices.ContainsFunc(d.Outside, func(prefix string) bool { return matchesPattern(prefix+"/...", importPath) })
}

// Confined is a dependency allowed in one place only.
type Confined struct {
	// Import is a prefix of import paths.
	Import string
	// To lists patterns of the folders with permission to import it.
	To []string
	// Why is the reason of the rule.
	Why string
}

// ConfinedImports checks that dependencies stay where they belong, in tests too.
func (t *Tree) ConfinedImports(rules []Confined) (breaches []string) {
	for _, f := range t.Files {
		for _, spec := range f.Syntax.Imports {
			for _, r := range rules {
				if matchesPattern(r.Import+"/...", importPath(spec)) && !matchesAny(r.To, f.Dir()) {
					breaches = append(breaches, fmt.Sprintf("%s: %s is imported outside %s: %s",
						f.placeOf(spec), importPath(spec), strings.Join(r.To, ", "), r.Why))
				}
			}
		}
	}
	return breaches
}

// clockFuncs are the functions of package time for reading the clock and waiting.
var clockFuncs = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// Pure checks that a folder holds pure functions: no clock, no goroutine and
// no channel.
func (t *Tree) Pure(dir, why string) (breaches []string) {
	for _, f := range t.Files {
		if f.Dir() != dir || f.IsTest() {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			what := ""
			switch n := n.(type) {
			case *ast.GoStmt:
				what = "starts a goroutine"
			case *ast.ChanType:
				what = "uses a channel"
			case *ast.SelectorExpr:
				if f.isCall(n, "time", clockFuncs...) {
					what = "looks at the clock (time." + n.Sel.Name + ")"
				}
			}
			if what != "" {
				breaches = append(breaches, fmt.Sprintf("%s: %s %s: %s", f.placeOf(n), dir, what, why))
			}
			return true
		})
	}
	return breaches
}

// isCall reports whether the selector names one of the functions of the standard package pkg, imported under its
// own name.
func (f *File) isCall(s *ast.SelectorExpr, pkg string, funcs ...string) bool {
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg && f.importsPath(pkg) && slices.Contains(funcs, s.Sel.Name)
}

func (f *File) importsPath(path string) bool {
	return slices.ContainsFunc(f.Syntax.Imports, func(s *ast.ImportSpec) bool { return importPath(s) == path })
}

func importPath(spec *ast.ImportSpec) string {
	path, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic(fmt.Sprintf("the parser accepted the import path %s: %v", spec.Path.Value, err))
	}
	return path
}
