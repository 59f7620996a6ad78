// SPDX-License-Identifier: Apache-2.0

package node

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestStateIsWrittenByItsOwner holds that a writer changes only its own part of a podState and only reads the rest through all. Only these
// files change a whole state.
func TestStateIsWrittenByItsOwner(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	owners := map[string]bool{"state.go": true, "statewriters.go": true, "drain.go": true}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					if throughAll(to) {
						t.Errorf("%s: a part of the state is written that is another owner's", fset.Position(to.Pos()))
					}
				}
			case *ast.IncDecStmt:
				if throughAll(n.X) {
					t.Errorf("%s: a part of the state is written that is another owner's", fset.Position(n.Pos()))
				}
			case *ast.FuncLit:
				if changes(n.Type) {
					found++
					if !owners[name] {
						t.Errorf("%s: a whole state is changed", fset.Position(n.Pos()))
					}
				}
			}
			return true
		})
	}
	if found == 0 {
		t.Error("no function changes a state: the test looks for the wrong thing")
	}
}

// throughAll reports whether the expression uses the field all.
func throughAll(e ast.Expr) bool {
	for {
		switch x := e.(type) {
		case *ast.SelectorExpr:
			if x.Sel.Name == "all" {
				return true
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return false
		}
	}
}

// changes reports whether a function takes a *podState.
func changes(f *ast.FuncType) bool {
	for _, p := range f.Params.List {
		if star, ok := p.Type.(*ast.StarExpr); ok {
			if id, ok := star.X.(*ast.Ident); ok && id.Name == "podState" {
				return true
			}
		}
	}
	return false
}
