// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Abilities has the places of the lists of providers' optional abilities. An ability is written as its package
// and name, such as node.PodNotifier.
type Abilities struct {
	// List is the file with the abilities of its package, and with a comment about all others.
	List string
	// In, Type and Field name the field with the list of all abilities in its comment: Field of the struct Type
	// in the folder In.
	In, Type, Field string
	// Guide is a document for authors, with a link to List.
	Guide string
	// AskedIn are the folders with type assertions of providers.
	AskedIn []string
	// Others are interfaces of other values than providers there, with a name of these values.
	Others map[string]string
}

// Abilities checks that both lists are complete, and that the guide leads authors to them.
func (t *Tree) Abilities(a Abilities) (breaches []string) {
	asked, unnamed := t.askedInterfaces(a.AskedIn)
	breaches = append(breaches, unnamed...)
	declared, listed := t.listedAbilities(a.List)
	documented, ok := t.fieldComment(a.In, a.Type, a.Field)
	if !ok {
		breaches = append(breaches, fmt.Sprintf("%s: there is no %s with a commented field %s", a.In, a.Type, a.Field))
	}
	breaches = append(breaches, t.lacksLink(a.Guide, a.List)...)
	for _, other := range slices.Sorted(maps.Keys(a.Others)) {
		if asked[other] == "" {
			breaches = append(breaches, fmt.Sprintf("nothing is asked for %s (%s): take it off", other, a.Others[other]))
		}
		delete(asked, other)
	}
	for _, ability := range slices.Sorted(maps.Keys(asked)) {
		if !listed[ability] {
			breaches = append(breaches, fmt.Sprintf("%s: does not list %s, which a provider is asked for at %s", a.List, ability, asked[ability]))
		}
		short := strings.TrimPrefix(ability, path.Base(a.In)+".") // as written inside of the package
		if !regexp.MustCompile(`(^|[^\w.])` + regexp.QuoteMeta(short) + `\b`).MatchString(documented) {
			breaches = append(breaches, fmt.Sprintf("%s: the comment of %s.%s does not name %s, which a provider is asked for at %s", a.In, a.Type, a.Field, short, asked[ability]))
		}
	}
	for _, ability := range slices.Sorted(maps.Keys(declared)) {
		if asked[ability] == "" {
			breaches = append(breaches, fmt.Sprintf("%s: declares %s, which nobody asks a provider for", a.List, ability))
		}
	}
	return breaches
}

// lacksLink returns a breach if a document has no link to a file.
func (t *Tree) lacksLink(document, file string) (breaches []string) {
	data, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(document)))
	if err != nil {
		return []string{err.Error()}
	}
	target, err := filepath.Rel(filepath.FromSlash(path.Dir(document)), filepath.FromSlash(file))
	if err != nil || !strings.Contains(string(data), "]("+filepath.ToSlash(target)+")") {
		breaches = append(breaches, fmt.Sprintf("%s: has no link to %s, which lists all abilities", document, file))
	}
	return breaches
}

// askedInterfaces returns the places, in the folders and not in tests, where values are asked for interfaces of this
// repository. Asking a provider for an interface without a name is a breach.
func (t *Tree) askedInterfaces(dirs []string) (at map[string]string, breaches []string) {
	at = map[string]string{}
	for _, f := range t.Files {
		if f.IsTest() || !slices.Contains(dirs, f.Dir()) {
			continue
		}
		ask := func(x ast.Node, typ ast.Expr) {
			if _, anonymous := typ.(*ast.InterfaceType); anonymous && strings.HasSuffix(strings.ToLower(strings.TrimSuffix(f.textOf(x), ".(type)")), "provider") {
				breaches = append(breaches, f.placeOf(typ)+": a provider is asked for an ability without a name: declare it")
			}
			if dir, name := t.typeName(f, typ); t.isInterface(dir, name) {
				at[path.Base(dir)+"."+name] = f.placeOf(typ)
			}
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeAssertExpr:
				ask(n.X, n.Type)
			case *ast.TypeSwitchStmt:
				for _, clause := range n.Body.List {
					for _, typ := range clause.(*ast.CaseClause).List {
						ask(n.Assign, typ)
					}
				}
			}
			return true
		})
	}
	return at, breaches
}

// typeName returns the folder and name of the exported type in an expression, or "".
func (t *Tree) typeName(f *File, typ ast.Expr) (dir, name string) {
	switch typ := typ.(type) {
	case *ast.Ident:
		if typ.IsExported() {
			return f.Dir(), typ.Name
		}
	case *ast.SelectorExpr:
		pkg := f.textOf(typ.X)
		for _, spec := range f.Syntax.Imports {
			folder, ours := t.folderOf(importPath(spec))
			if ours && (spec.Name == nil && path.Base(folder) == pkg || spec.Name != nil && spec.Name.Name == pkg) {
				return folder, typ.Sel.Name
			}
		}
	}
	return "", ""
}

func (t *Tree) isInterface(dir, name string) bool {
	for _, f := range t.filesIn(dir) {
		for _, spec := range f.declaredTypes() {
			if _, is := spec.Type.(*ast.InterfaceType); is && spec.Name.Name == name {
				return true
			}
		}
	}
	return false
}

// declaredTypes returns the types that the file declares.
func (f *File) declaredTypes() (specs []*ast.TypeSpec) {
	for _, d := range f.Syntax.Decls {
		if group, ok := d.(*ast.GenDecl); ok && group.Tok == token.TYPE {
			for _, spec := range group.Specs {
				specs = append(specs, spec.(*ast.TypeSpec))
			}
		}
	}
	return specs
}

// listedAbilities returns the abilities declared by a file, and the abilities of any package at the beginning of a line
// of its comments.
func (t *Tree) listedAbilities(file string) (declared, listed map[string]bool) {
	declared, listed = map[string]bool{}, map[string]bool{}
	own := path.Base(path.Dir(file)) + "."
	for _, f := range t.Files {
		if f.Path != file {
			continue
		}
		for _, spec := range f.declaredTypes() {
			declared[own+spec.Name.Name] = true
		}
		for _, group := range f.Syntax.Comments {
			for _, c := range group.List {
				entry, indented := strings.CutPrefix(c.Text, "//\t")
				name, _, _ := strings.Cut(entry, " ")
				if !strings.Contains(name, ".") {
					name = own + name
				}
				listed[name] = listed[name] || indented
			}
		}
	}
	return declared, listed
}

// fieldComment returns the comment of a field of a struct.
func (t *Tree) fieldComment(dir, typ, field string) (text string, ok bool) {
	for _, f := range t.filesIn(dir) {
		for _, spec := range f.declaredTypes() {
			fields, is := spec.Type.(*ast.StructType)
			if !is || spec.Name.Name != typ {
				continue
			}
			for _, entry := range fields.Fields.List {
				if slices.ContainsFunc(entry.Names, func(n *ast.Ident) bool { return n.Name == field }) && entry.Doc != nil {
					return entry.Doc.Text(), true
				}
			}
		}
	}
	return "", false
}
