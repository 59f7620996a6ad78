// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// MethodFile names the file of a method in every provider with the method.
type MethodFile struct {
	Method string
	// Takes is part of the type of one of the method's parameters, because methods of other interfaces have the
	// same name.
	Takes string
	File  string
}

// MethodFiles has the files of providers' methods.
type MethodFiles struct {
	// Dir has a folder for each provider, except for the folder Emulators. Shared are other folders below Dir
	// with types of providers.
	Dir, Emulators string
	Shared         []string
	Methods        []MethodFile
	// Together is a file for all of these methods of a provider instead.
	Together string
}

// MethodFiles checks that each provider has each method in the method's file, or all methods together in one
// file.
func (t *Tree) MethodFiles(m MethodFiles) (breaches []string) {
	for _, name := range slices.Concat(t.providerFolders(m.Dir, m.Emulators), m.Shared) {
		var astray []string
		together := true
		for _, f := range t.filesIn(path.Join(m.Dir, name)) {
			if f.IsTest() {
				continue
			}
			for _, method := range f.methodsOf(m.Methods) {
				together = together && path.Base(f.Path) == m.Together
				if path.Base(f.Path) != method.File {
					astray = append(astray, fmt.Sprintf("%s: has %s: move it to %s, where every provider has it", f.Path, method.Method, method.File))
				}
			}
		}
		if !together {
			breaches = append(breaches, astray...)
		}
	}
	return breaches
}

// methodsOf returns the methods among some declared by the file.
func (f *File) methodsOf(methods []MethodFile) (found []MethodFile) {
	for _, d := range f.Syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv == nil {
			continue
		}
		for _, m := range methods {
			if fn.Name.Name == m.Method && slices.ContainsFunc(fn.Type.Params.List, func(p *ast.Field) bool { return strings.Contains(f.textOf(p.Type), m.Takes) }) {
				found = append(found, m)
			}
		}
	}
	return found
}
