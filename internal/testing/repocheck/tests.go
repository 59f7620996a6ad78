// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"go/ast"
	"strings"
)

// Test is a test function of the tree.
type Test struct {
	Name string
	// At is its file and line, Dir its folder.
	At, Dir string
}

// Tests returns the tests with the name prefix, in the order of the files.
func (t *Tree) Tests(prefix string) (tests []Test) {
	for _, f := range t.Files {
		if !f.IsTest() {
			continue
		}
		for _, d := range f.Syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, prefix) {
				tests = append(tests, Test{Name: fn.Name.Name, At: f.placeOf(fn), Dir: f.Dir()})
			}
		}
	}
	return tests
}
