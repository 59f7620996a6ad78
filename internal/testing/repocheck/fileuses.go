// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
)

// uses has the shared names of the files of a package, without its tests: by using file, by used file. Every
// file is in it. A use is a use of a function, a method, a field, a type, a constant or a variable of another
// file.
type uses map[string]map[string]map[string]bool

// noImports lets the type checker run without other packages: their declarations are in no file of this package.
type noImports struct{}

// Import returns an error.
func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not needed") }

// usesIn reads the uses of the package in a folder.
func (t *Tree) usesIn(dir string) uses {
	fset, files := token.NewFileSet(), []*ast.File(nil)
	for _, f := range t.Files {
		if f.Dir() != dir || f.IsTest() {
			continue
		}
		syntax, err := parser.ParseFile(fset, f.Path, f.Text, parser.SkipObjectResolution)
		if err != nil {
			panic(fmt.Sprintf("parse %s, which was parsed before: %v", f.Path, err))
		}
		files = append(files, syntax)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	checker := types.Config{Importer: noImports{}, Error: func(error) {}} // errors of the missing imports do not matter
	pkg, _ := checker.Check(dir, fset, files, info)
	u := uses{}
	for _, syntax := range files {
		u[path.Base(fset.Position(syntax.Package).Filename)] = map[string]map[string]bool{}
	}
	for id, object := range info.Uses {
		if object.Pkg() != pkg || !outlivesFunction(object, pkg) {
			continue
		}
		from, to := path.Base(fset.Position(id.Pos()).Filename), path.Base(fset.Position(object.Pos()).Filename)
		if from == to {
			continue
		}
		if u[from][to] == nil {
			u[from][to] = map[string]bool{}
		}
		u[from][to][object.Name()] = true
	}
	return u
}

// outlivesFunction reports whether an object is known outside of its function.
func outlivesFunction(object types.Object, pkg *types.Package) bool {
	switch o := object.(type) {
	case *types.Var:
		return o.IsField() || o.Parent() == pkg.Scope()
	case *types.Func:
		return true
	case *types.TypeName, *types.Const:
		return o.Parent() == pkg.Scope()
	}
	return false
}
