// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
)

// MethodFile names the file of a method in every provider that has the method.
type MethodFile struct {
	Method string
	// Takes is in the type of one of its parameters: methods of other interfaces have the same name.
	Takes string
	File  string
}

// MethodFiles is where providers have their methods.
type MethodFiles struct {
	// Dir has a folder for each provider; the folder Emulators of it is none. Shared are other folders below Dir whose types are providers.
	Dir, Emulators string
	Shared         []string
	Methods        []MethodFile
	// Elsewhere has methods that a provider has in another file today, by provider and method, with the file.
	Elsewhere map[string]map[string]string
}

// MethodFiles checks that each provider has each method in its file. A method that it has elsewhere and that is listed is a breach when it is
// there no longer.
func (t *Tree) MethodFiles(m MethodFiles) (breaches []string) {
	found := map[string]map[string]string{}
	for _, name := range slices.Concat(t.providers(m.Dir, m.Emulators), m.Shared) {
		found[name] = map[string]string{}
		for _, f := range t.of(path.Join(m.Dir, name)) {
			if f.IsTest() {
				continue
			}
			for _, method := range f.methodsOf(m.Methods) {
				file := path.Base(f.Path)
				if file == method.File {
					continue
				}
				found[name][method.Method] = file
				if m.Elsewhere[name][method.Method] != file {
					breaches = append(breaches, fmt.Sprintf("%s: has %s: move it to %s, where every provider has it", f.Path, method.Method, method.File))
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Elsewhere)) {
		for _, method := range slices.Sorted(maps.Keys(m.Elsewhere[name])) {
			if file := m.Elsewhere[name][method]; found[name][method] != file {
				breaches = append(breaches, fmt.Sprintf("%s: %s of %s has no longer %s: take that off the list", m.Dir, file, name, method))
			}
		}
	}
	return breaches
}

// methodsOf returns the methods among some that the file declares.
func (f *File) methodsOf(methods []MethodFile) (found []MethodFile) {
	for _, d := range f.Syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv == nil {
			continue
		}
		for _, m := range methods {
			if fn.Name.Name == m.Method && slices.ContainsFunc(fn.Type.Params.List, func(p *ast.Field) bool { return strings.Contains(f.text(p.Type), m.Takes) }) {
				found = append(found, m)
			}
		}
	}
	return found
}
