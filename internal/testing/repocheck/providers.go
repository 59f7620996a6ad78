// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Shape is the required shape of every provider.
type Shape struct {
	// Dir has a folder for each provider, and the folder internal for shared code.
	Dir string
	// Emulators is the folder below Dir with servers of services for tests, and no provider.
	Emulators string
	// Files are the files in the folder of each provider.
	Files []string
	// Entry are the possible files of the function Provider.
	Entry []string
	// Done are files replaced by an imported package, by package.
	Done map[string][]string
	// Excused are missing files of a provider, by provider and file, with the reason.
	Excused map[string]map[string]string
	// Program is the folder of the program with all providers.
	Program string
}

// Providers checks that each provider has the required files and is independent of the other providers.
func (t *Tree) Providers(s Shape) (breaches []string) {
	names := t.providerFolders(s.Dir, s.Emulators)
	if len(names) == 0 {
		breaches = append(breaches, s.Dir+": there is no provider")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Excused)) {
		if !slices.Contains(names, name) {
			breaches = append(breaches, fmt.Sprintf("%s: there is no provider %s to be excused from anything", s.Dir, name))
		}
	}
	for _, name := range names {
		breaches = append(breaches, t.checkFiles(s, name)...)
		breaches = append(breaches, t.checkEntry(s, name)...)
		breaches = append(breaches, t.checkAlone(s.Dir, name, names)...)
		breaches = append(breaches, t.checkApart(s, name)...)
		breaches = append(breaches, t.checkCredentials(path.Join(s.Dir, name))...)
	}
	return breaches
}

// providerFolders returns the folders with Go files below dir, without the emulators.
func (t *Tree) providerFolders(dir, emulators string) []string {
	names := map[string]bool{}
	for _, f := range t.Files {
		if rest, ok := strings.CutPrefix(f.Dir(), dir+"/"); ok {
			name, _, _ := strings.Cut(rest, "/")
			names[name] = name != "internal" && name != emulators
		}
	}
	maps.DeleteFunc(names, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(names))
}

// checkFiles checks that the files exist, except for the excused ones.
func (t *Tree) checkFiles(s Shape, name string) (breaches []string) {
	dir := path.Join(s.Dir, name)
	var done []string
	for _, standsOn := range slices.Sorted(maps.Keys(s.Done)) {
		if slices.ContainsFunc(t.filesIn(dir), func(f *File) bool { return !f.IsTest() && f.importsPath(t.ModulePath+"/"+standsOn) }) {
			done = append(done, s.Done[standsOn]...)
		}
	}
	for _, file := range s.Files {
		_, err := os.Stat(filepath.Join(t.Root, filepath.FromSlash(dir), file))
		why, excused := s.Excused[name][file]
		switch {
		case excused && err == nil:
			breaches = append(breaches, fmt.Sprintf("%s/%s: is there, though the provider is excused from it (%s): take that off", dir, file, why))
		case !excused && err != nil && !slices.Contains(done, file):
			breaches = append(breaches, fmt.Sprintf("%s/%s: is missing: every provider has it", dir, file))
		}
	}
	return breaches
}

// filesIn returns the files directly in a folder.
func (t *Tree) filesIn(dir string) (files []*File) {
	for _, f := range t.Files {
		if f.Dir() == dir {
			files = append(files, f)
		}
	}
	return files
}

// checkEntry checks how the program gets the provider: from its function Provider, with nothing between.
func (t *Tree) checkEntry(s Shape, name string) (breaches []string) {
	dir := path.Join(s.Dir, name)
	exported := slices.ContainsFunc(t.filesIn(dir), func(f *File) bool {
		return slices.Contains(s.Entry, path.Base(f.Path)) && slices.ContainsFunc(f.Syntax.Decls, func(d ast.Decl) bool {
			fn, ok := d.(*ast.FuncDecl)
			return ok && fn.Recv == nil && fn.Name.Name == "Provider" && len(fn.Type.Params.List) == 0 && fn.Type.Results != nil &&
				len(fn.Type.Results.List) == 1 && f.textOf(fn.Type.Results.List[0].Type) == "cli.Provider"
		})
	})
	if !exported {
		breaches = append(breaches, dir+"/"+s.Entry[0]+": does not export func Provider() cli.Provider")
	}
	file := path.Join(s.Program, "provider_"+name+".go")
	i := slices.IndexFunc(t.Files, func(f *File) bool { return f.Path == file })
	if i < 0 {
		return append(breaches, file+": is missing, so the program does not have the provider")
	}
	want := fmt.Sprintf("package main import \"%s/%s\" func init() { builtIn = append(builtIn, %s.Provider) }", t.ModulePath, dir, name)
	f := t.Files[i]
	if got := strings.Join(strings.Fields(f.Text[f.offsetOf(f.Syntax.Package):]), " "); got != want {
		breaches = append(breaches, fmt.Sprintf("%s: holds more or less than %q", file, want))
	}
	if !f.leftOutBy("no_" + name) {
		breaches = append(breaches, fmt.Sprintf("%s: want //go:build !no_%s, to build the program without it", file, name))
	}
	return breaches
}

// leftOutBy reports whether the file is built without the tag, and not with it.
func (f *File) leftOutBy(tag string) bool {
	for line := range strings.Lines(f.Text) {
		if expr, err := constraint.Parse(strings.TrimSpace(line)); err == nil {
			return expr.Eval(func(string) bool { return false }) && !expr.Eval(func(is string) bool { return is == tag })
		}
	}
	return false
}

func (f *File) offsetOf(p token.Pos) int { return f.fset.Position(p).Offset }

// textOf returns the source text of a node.
func (f *File) textOf(n ast.Node) string { return f.Text[f.offsetOf(n.Pos()):f.offsetOf(n.End())] }

// checkAlone checks that the provider imports no other. Its tests may import others: plugin is tested with other
// providers behind it.
func (t *Tree) checkAlone(dir, name string, names []string) (breaches []string) {
	for _, f := range t.filesBelow(path.Join(dir, name)) {
		if f.IsTest() {
			continue
		}
		for _, spec := range f.Syntax.Imports {
			folder, ours := t.folderOf(importPath(spec))
			for _, other := range names {
				if ours && other != name && matchesPattern(path.Join(dir, other)+"/...", folder) {
					breaches = append(breaches, fmt.Sprintf("%s: provider %s must not import provider %s: move what they share to a public package, or to %s/internal", f.placeOf(spec), name, other, dir))
				}
			}
		}
	}
	return breaches
}

// checkApart checks that the provider imports no emulator. Its tests may.
func (t *Tree) checkApart(s Shape, name string) (breaches []string) {
	for _, f := range t.filesBelow(path.Join(s.Dir, name)) {
		for _, spec := range f.Syntax.Imports {
			if folder, ours := t.folderOf(importPath(spec)); ours && s.Emulators != "" && !f.IsTest() && matchesPattern(path.Join(s.Dir, s.Emulators)+"/...", folder) {
				breaches = append(breaches, fmt.Sprintf("%s: provider %s must not import the emulator %s: only tests may", f.placeOf(spec), name, folder))
			}
		}
	}
	return breaches
}

// filesBelow returns the files in a folder and below it.
func (t *Tree) filesBelow(dir string) (files []*File) {
	for _, f := range t.Files {
		if matchesPattern(dir+"/...", f.Dir()) {
			files = append(files, f)
		}
	}
	return files
}

// credential matches the name of an annotation or label for a credential, with the prefix of its owner.
var credential = regexp.MustCompile(`(?i)^[a-z0-9.-]+\.[a-z]+/[a-z0-9._-]*(password|passwd|secret|token|credential|api-?key|access-?key|private-?key|sas)[a-z0-9._-]*$`)

// checkCredentials checks that a provider takes no credentials from pods: a user who may create a pod could use, or
// read, the operator's.
func (t *Tree) checkCredentials(dir string) (breaches []string) {
	for _, f := range t.filesBelow(dir) {
		if f.IsTest() {
			continue
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && credential.MatchString(text) {
					breaches = append(breaches, fmt.Sprintf("%s: %s names a credential like an annotation: take it from the configuration, as a config.Secret", f.placeOf(n), text))
				}
			case *ast.SelectorExpr:
				if f.textOf(n) == "config.Literal" && f.importsPath(t.ModulePath+"/providerkit/config") {
					breaches = append(breaches, f.placeOf(n)+": a secret of a provider comes from its configuration alone: give the field the type config.Secret")
				}
			}
			return true
		})
	}
	return breaches
}
