// SPDX-License-Identifier: Apache-2.0

// Command mutants finds conditions of a package that its own tests do not hold.
//
// Each condition of an if or of a case, and each operand of && and ||, is made true and made false, one at a time, and the tests of the
// package are run. It prints those with which they still pass, and ends with 0: whether one of them is a rule without a test, or decides
// nothing, is for a reader to say.
//
// What surprises: the tests are built once. All mutants are in the program, and MUTANT says which of them is the case, so two
// thousand take minutes.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// hang is when a mutant counts as found that does not end.
const hang = time.Minute

func main() {
	dir := flag.String("package", "internal/lifecycle", "`folder` of the package")
	flag.Parse()
	if err := run(context.Background(), *dir); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	places, overlay, err := mutate(dir, work)
	if err != nil {
		return err
	}
	tests := filepath.Join(work, "tests")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", tests, ".")
	build.Dir, build.Stderr = dir, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the tests of %s with its mutants: %w", dir, err)
	}
	if !passes(ctx, dir, tests, 0) {
		return fmt.Errorf("the tests of %s fail without a mutant", dir)
	}
	alive := 0
	for i, place := range places {
		for n, value := range []bool{true, false} {
			if passes(ctx, dir, tests, 2*i+n+1) {
				alive++
				fmt.Printf("%s is always %v, and the tests pass\n", place, value)
			}
		}
	}
	fmt.Printf("%d mutants, %d of them pass the tests\n", 2*len(places), alive)
	return nil
}

func passes(ctx context.Context, dir, tests string, mutant int) bool {
	ctx, cancel := context.WithTimeout(ctx, hang)
	defer cancel()
	cmd := exec.CommandContext(ctx, tests) //nolint:gosec // It was built here.
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "MUTANT="+strconv.Itoa(mutant))
	return cmd.Run() == nil
}

// mutate writes the files of the package with all mutants, and an overlay that puts them in the place of the real ones. The numbers of
// a place's two mutants are 2 n + 1 and 2 n + 2.
func mutate(dir, work string) (places []string, overlay string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, "", err
	}
	replace, pkg := map[string]string{}, ""
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return nil, "", err
		}
		f := &source{fset: token.NewFileSet(), text: src, first: len(places), known: map[ast.Expr]bool{}}
		syntax, err := parser.ParseFile(f.fset, filepath.Base(name), src, 0)
		if err != nil {
			return nil, "", err
		}
		pkg = syntax.Name.Name
		ast.Inspect(syntax, f.look)
		places = append(places, f.places...)
		replace[name] = filepath.Join(work, filepath.Base(name))
		if err := os.WriteFile(replace[name], f.mutated(), 0o600); err != nil {
			return nil, "", err
		}
	}
	helper := filepath.Join(work, "mutants.helper")
	replace[filepath.Join(dir, "zz_mutants.go")] = helper
	if err := os.WriteFile(helper, fmt.Appendf(nil, switchSource, pkg), 0o600); err != nil {
		return nil, "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, "", err
	}
	overlay = filepath.Join(work, "overlay.json")
	return places, overlay, os.WriteFile(overlay, text, 0o600)
}

const switchSource = `package %s

import (
	"os"
	"strconv"
)

var mutant, _ = strconv.Atoi(os.Getenv("MUTANT"))

func mutantOf(place int, real func() bool) bool {
	switch mutant {
	case 2*place + 1:
		return true
	case 2*place + 2:
		return false
	}
	return real()
}
`

// source is one file with the places where its conditions are.
type source struct {
	fset   *token.FileSet
	text   []byte
	first  int // the number of its first place
	places []string
	known  map[ast.Expr]bool
	edits  []edit
}

// edit is text that comes before an offset. Of those at the same offset, what ends comes before what begins, the inner end first and the
// outer beginning first.
type edit struct {
	at    int
	order int
	text  string
}

func (f *source) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.place(n.Cond)
	case *ast.SwitchStmt:
		for _, c := range n.Body.List {
			for _, e := range c.(*ast.CaseClause).List {
				if n.Tag == nil {
					f.place(e)
				}
			}
		}
	case *ast.BinaryExpr:
		if n.Op == token.LAND || n.Op == token.LOR {
			f.place(n.X)
			f.place(n.Y)
		}
	}
	return true
}

// place makes a condition one that can be a mutant, and then those that it is made of.
func (f *source) place(e ast.Expr) {
	if f.known[e] {
		return
	}
	f.known[e] = true
	begin, end := f.fset.Position(e.Pos()), f.fset.Position(e.End())
	number := f.first + len(f.places)
	f.places = append(f.places, fmt.Sprintf("%s:%d: %s", begin.Filename, begin.Line, bytes.Join(bytes.Fields(f.text[begin.Offset:end.Offset]), []byte(" "))))
	f.edits = append(f.edits,
		edit{begin.Offset, number + 1, fmt.Sprintf("mutantOf(%d, func() bool { return ", number)},
		edit{end.Offset, -number - 1, " })"})
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			f.place(e.X)
			f.place(e.Y)
		}
	case *ast.ParenExpr:
		f.place(e.X)
	}
}

func (f *source) mutated() (out []byte) {
	slices.SortFunc(f.edits, func(a, b edit) int {
		if a.at != b.at {
			return a.at - b.at
		}
		return a.order - b.order
	})
	last := 0
	for _, e := range f.edits {
		out = append(append(out, f.text[last:e.at]...), e.text...)
		last = e.at
	}
	return append(out, f.text[last:]...)
}
