// SPDX-License-Identifier: Apache-2.0

// Package repocheck finds where the repository breaks its own rules. The rules, with their reasons, are in test/repo.
//
// Every check returns the breaches, one sentence each, with the file and the remedy; an empty result is a pass.
// Nothing is downloaded.
//
// Note: nested modules are part of the tree. Their import paths continue the library's, so a folder and
// an import path mean the same thing.
package repocheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// Tree is the repository as the checks see it.
type Tree struct {
	// Root is the directory of the library's module.
	Root string
	// ModulePath is the library's module path.
	ModulePath string
	// Files are the Go files of all modules.
	Files []*File
	// Modules are the go.mod files by their folder; the library's is ".".
	Modules map[string]*modfile.File
}

// File is a Go file.
type File struct {
	// Path is relative to the root, with slashes.
	Path   string
	Text   string
	Syntax *ast.File
	fset   *token.FileSet
}

// Dir returns the folder of the file relative to the root, or "." at the top.
func (f *File) Dir() string { return path.Dir(f.Path) }

// IsTest reports whether the file is compiled only for tests.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// placeOf returns path:line of a node.
func (f *File) placeOf(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.Path, f.fset.Position(n.Pos()).Line)
}

// Load reads the tree below root. The root must hold a go.mod. Folders ignored by the go command and folders of
// built programs are left out.
func Load(root string) (*Tree, error) {
	t := &Tree{Root: root, Modules: map[string]*modfile.File{}}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && isIgnored(d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		return t.add(name)
	})
	if err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	top, ok := t.Modules["."]
	if !ok {
		return nil, fmt.Errorf("read the tree: %s has no go.mod", root)
	}
	t.ModulePath = top.Module.Mod.Path
	return t, nil
}

func isIgnored(dir string) bool {
	return dir == "bin" || dir == "testdata" || strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_")
}

func (t *Tree) add(name string) error {
	if filepath.Ext(name) != ".go" && filepath.Base(name) != "go.mod" {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(t.Root, name)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	if path.Base(rel) == "go.mod" {
		mod, err := modfile.Parse(rel, text, nil)
		if err != nil {
			return err
		}
		t.Modules[path.Dir(rel)] = mod
		return nil
	}
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, rel, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.Files = append(t.Files, &File{Path: rel, Text: string(text), Syntax: syntax, fset: fset})
	return nil
}

// folderOf returns the folder of an import path of this repository.
func (t *Tree) folderOf(importPath string) (folder string, ours bool) {
	if importPath == t.ModulePath {
		return ".", true
	}
	return strings.CutPrefix(importPath, t.ModulePath+"/")
}

// matchesPattern reports whether dir matches the pattern: the folder itself, or with a final /... also everything below
// it. The pattern ... is the whole tree.
func matchesPattern(pattern, dir string) bool {
	if pattern == "..." {
		return true
	}
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return dir == base || strings.HasPrefix(dir, base+"/")
	}
	return dir == pattern
}

func matchesAny(patterns []string, dir string) bool {
	for _, p := range patterns {
		if matchesPattern(p, dir) {
			return true
		}
	}
	return false
}
