// SPDX-License-Identifier: Apache-2.0

package compat

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"
)

//go:embed api.txt
var apiList string

// TestPublicAPI fails when a known provider would no longer compile.
func TestPublicAPI(t *testing.T) {
	want := parseList(t, apiList)
	if len(want) < 294 {
		t.Errorf("the list has %d identifiers, fewer than the 294 that were promised: none may be removed", len(want))
	}
	faults := compare(want, load(t, paths(want)), grown)
	for _, f := range faults {
		t.Error(f)
	}
	if len(faults) > 0 {
		t.Errorf("%d of %d identifiers are not as programs in the field expect them", len(faults), len(want))
	}
}

// parseList reads lines of <path> <kind> <name> <type>; # begins a comment.
func parseList(t *testing.T, list string) map[identifier]string {
	t.Helper()
	want := map[identifier]string{}
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.SplitN(line, " ", 4)
		if len(f) < 4 {
			t.Fatalf("%q is not <import path> <kind> <name> <type>", line)
		}
		want[identifier{f[0], f[1], f[2]}] = f[3]
	}
	return want
}

func paths(want map[identifier]string) []string {
	set := map[string]bool{}
	for id := range want {
		set[id.path] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// load describes the packages of the tree. It reports a package that does not exist or does not compile; this
// package then lacks its identifiers.
func load(t *testing.T, paths []string) map[identifier]string {
	t.Helper()
	mode := packages.NeedName | packages.NeedFiles | packages.NeedTypes | packages.NeedImports | packages.NeedExportFile
	loaded, err := packages.Load(&packages.Config{Context: t.Context(), Mode: mode}, paths...)
	if err != nil {
		t.Fatalf("load packages: %v", err)
	}
	have := map[identifier]string{}
	for _, p := range loaded {
		for _, e := range p.Errors {
			t.Errorf("package %s: %v", p.PkgPath, e)
		}
		// The go command reads the packages in another process. Reading the files here makes the test cache notice a change of the tree.
		for _, file := range p.GoFiles {
			if _, err := os.Stat(file); err != nil {
				t.Error(err)
			}
		}
		if p.Types != nil {
			maps.Copy(have, exported(p.Types))
		}
	}
	return have
}

// compare returns the differences, sorted. Structs may have the additional fields in grown.
func compare(want, have map[identifier]string, grown map[string]map[string]string) (faults []string) {
	for id, typ := range want {
		switch got, ok := have[id]; {
		case !ok:
			faults = append(faults, fmt.Sprintf("missing: %s %s", id, typ))
		case got != typ:
			faults = append(faults, fmt.Sprintf("changed: %s\n\twant %s\n\thave %s", id, typ, got))
		}
	}
	for id, typ := range have {
		if _, listed := want[id]; listed {
			continue
		}
		owner, member, _ := strings.Cut(id.name, ".")
		switch kind := want[identifier{id.path, "type", owner}]; {
		case id.kind == "method" && kind == "interface":
			faults = append(faults, fmt.Sprintf("added to an interface that others implement: %s %s", id, typ))
		case id.kind == "field" && kind == "struct" && grown[id.path+"."+owner][member] == "":
			faults = append(faults, fmt.Sprintf("added to a struct that others convert: %s %s", id, typ))
		}
	}
	faults = append(faults, idle(want, have, grown)...)
	slices.Sort(faults)
	return faults
}

// idle returns the entries of grown that the tree does not have, or that api.txt already has.
func idle(want, have map[identifier]string, grown map[string]map[string]string) (faults []string) {
	for owner, fields := range grown {
		dot := strings.LastIndex(owner, ".")
		for field := range fields {
			id := identifier{owner[:dot], "field", owner[dot+1:] + "." + field}
			_, old := want[id]
			if _, there := have[id]; old || !there {
				faults = append(faults, fmt.Sprintf("named as added, and it is not: %s", id))
			}
		}
	}
	return faults
}

// TestCompareFindsEveryKindOfBreak proves that TestPublicAPI can fail.
func TestCompareFindsEveryKindOfBreak(t *testing.T) {
	const before = `package p
		type Store interface { Get(name string) (int, error) }
		type Config struct { Size int; OnEvent func(s string) error }
		type Own struct { own bool }
		type Retry = func(int) (*int, error)
		type Opt func(*Config) error
		const Limit = 20
		var Default func(times ...string) bool
		func New(c Config, opts ...Opt) *Config { return nil }
		func (c *Config) Run() <-chan struct{} { return nil }`
	const after = `package p
		type Store interface { Get(key string) (int, error); Put(name string); hidden() }
		type Config struct { Size int64; OnEvent func(string) error; Added, hidden, named bool }
		type Own struct { grows int }
		type Retry = func(int) (*int64, error)
		type Opt func(*Config)
		const Limit = 21
		var Default func(...string) bool
		func (c *Config) Run() chan struct{} { return nil }`
	if faults := compare(check(t, before), check(t, before), nil); len(faults) != 0 {
		t.Errorf("a package differs from itself: %q", faults)
	}
	allowed := map[string]map[string]string{"p.Config": {"named": "for a reason", "Gone": "was taken off", "Size": "is an old one"}}
	want := []string{
		"added to a struct that others convert: p field Config.Added bool",
		"added to a struct that others convert: p field Config.hidden bool",
		"added to an interface that others implement: p method Store.Put func(string)",
		"added to an interface that others implement: p method Store.hidden func()",
		"changed: p const Limit\n\twant untyped int = 20\n\thave untyped int = 21",
		"changed: p field Config.Size\n\twant int\n\thave int64",
		"changed: p method Config.Run\n\twant func() (<-chan struct{})\n\thave func() (chan struct{})",
		"changed: p type Opt\n\twant func(*p.Config) error\n\thave func(*p.Config)",
		"changed: p type Retry\n\twant = func(int) (*int, error)\n\thave = func(int) (*int64, error)",
		"missing: p func New func(p.Config, ...p.Opt) (*p.Config)",
		"named as added, and it is not: p field Config.Gone",
		"named as added, and it is not: p field Config.Size",
	}
	if diff := cmp.Diff(want, compare(check(t, before), check(t, after), allowed)); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func check(t *testing.T, source string) map[identifier]string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := new(types.Config).Check("p", fset, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return exported(p)
}
