// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
)

// uses is what the files of a package use of each other: by file, by file, the names.
type uses map[string]map[string]map[string]bool

// FileCircles finds files of a package, without its tests, that use each other, directly or by way of others. Where there are none, the
// files have an order: each is understood from those before it. A use is of a function, a method, a field, a type, a constant or a
// variable that another file declares.
func (t *Tree) FileCircles(dirs ...string) (breaches []string) {
	for _, dir := range dirs {
		u := t.usesIn(dir)
		for _, circle := range u.circles() {
			var says []string
			for _, from := range circle {
				for _, to := range circle {
					if names := u[from][to]; len(names) > 0 {
						says = append(says, fmt.Sprintf("%s uses %s of %s", from, slices.Sorted(maps.Keys(names))[0], to))
					}
				}
			}
			breaches = append(breaches, fmt.Sprintf("%s: %d files use each other: %s", dir, len(circle), strings.Join(says, ", ")))
		}
	}
	return breaches
}

// noImports makes the type checker go without other packages: what they declare is in no file of this one.
type noImports struct{}

// Import refuses.
func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not needed") }

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
	checker := types.Config{Importer: noImports{}, Error: func(error) {}} // what comes of the missing imports is no matter
	pkg, _ := checker.Check(dir, fset, files, info)
	u := uses{}
	for id, object := range info.Uses {
		if object.Pkg() != pkg || !outlives(object, pkg) {
			continue
		}
		from, to := path.Base(fset.Position(id.Pos()).Filename), path.Base(fset.Position(object.Pos()).Filename)
		if from == to {
			continue
		}
		if u[from] == nil {
			u[from] = map[string]map[string]bool{}
		}
		if u[from][to] == nil {
			u[from][to] = map[string]bool{}
		}
		u[from][to][object.Name()] = true
	}
	return u
}

// outlives reports whether an object is known outside the function that it is declared in.
func outlives(object types.Object, pkg *types.Package) bool {
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

// circles returns the files that reach each other, of several at a time: the strongly connected components, by Tarjan.
func (u uses) circles() (found [][]string) {
	number, low, stack := map[string]int{}, map[string]int{}, []string(nil)
	var visit func(string)
	visit = func(file string) {
		number[file] = len(number) + 1
		low[file] = number[file]
		stack = append(stack, file)
		for _, next := range slices.Sorted(maps.Keys(u[file])) {
			if number[next] == 0 {
				visit(next)
				low[file] = min(low[file], low[next])
			} else if slices.Contains(stack, next) {
				low[file] = min(low[file], number[next])
			}
		}
		if low[file] == number[file] {
			at := slices.Index(stack, file)
			if circle := slices.Clone(stack[at:]); len(circle) > 1 {
				slices.Sort(circle)
				found = append(found, circle)
			}
			stack = stack[:at]
		}
	}
	for _, file := range slices.Sorted(maps.Keys(u)) {
		if number[file] == 0 {
			visit(file)
		}
	}
	return found
}
