// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"fmt"
	"go/ast"
)

// Sleeps checks that tests do not sleep. In a synctest bubble they may, because time there is not real: in a
// file that imports testing/synctest, and in a function that opens a bubble, itself or through other functions
// of its folder.
func (t *Tree) Sleeps() (breaches []string) {
	bubbles := map[string]map[string]bool{}
	for _, f := range t.Files {
		if f.IsTest() && bubbles[f.Dir()] == nil {
			bubbles[f.Dir()] = t.bubbleTests(f.Dir())
		}
	}
	for _, f := range t.Files {
		if !f.IsTest() || f.importsPath("testing/synctest") {
			continue
		}
		for _, decl := range f.Syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && bubbles[f.Dir()][fn.Name.Name] {
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && f.isCall(s, "time", "Sleep") {
					breaches = append(breaches, fmt.Sprintf("%s: the test sleeps: wait on a condition, or run it in a synctest bubble", f.placeOf(s)))
				}
				return true
			})
		}
	}
	return breaches
}

// bubbleTests returns the names of the test functions of a folder with a bubble, and of their callers.
func (t *Tree) bubbleTests(dir string) map[string]bool {
	names := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, f := range t.Files {
			if !f.IsTest() || f.Dir() != dir {
				continue
			}
			for _, decl := range f.Syntax.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if ok && !names[fn.Name.Name] && f.opensBubble(fn, names) {
					names[fn.Name.Name], grown = true, true
				}
			}
		}
	}
	return names
}

// opensBubble reports whether fn calls synctest.Test or one of the named functions.
func (f *File) opensBubble(fn *ast.FuncDecl, named map[string]bool) (opens bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return !opens
		}
		switch callee := call.Fun.(type) {
		case *ast.Ident:
			opens = opens || named[callee.Name]
		case *ast.SelectorExpr:
			x, ok := callee.X.(*ast.Ident)
			opens = opens || ok && x.Name == "synctest" && callee.Sel.Name == "Test"
		}
		return !opens
	})
	return opens
}
