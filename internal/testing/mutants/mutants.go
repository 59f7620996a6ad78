// SPDX-License-Identifier: Apache-2.0

// Command mutants finds rules of a package that no test checks.
//
// Each condition of an if or of a case, and each operand of && and ||, is made true and made false, and each
// call statement is left out, one at a time. Then the tests that reach the place are run. The command prints the
// mutants with passing tests, and ends with 0. The reader decides whether such a mutant is a rule without a
// test, or has no effect.
//
// Note: the tests are built once. All mutants are in the program, and MUTANT selects a mutant, so two
// thousand take minutes.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// options select the mutants, and the time for them.
type options struct {
	dir    string
	draw   int // 0: all
	seed   uint64
	budget time.Duration // time limit for trying mutants
}

func main() {
	var o options
	flag.StringVar(&o.dir, "package", "internal/lifecycle", "`folder` of the package")
	flag.IntVar(&o.draw, "draw", 0, "`number` of mutants to draw; 0: try all")
	flag.Uint64Var(&o.seed, "seed", 0, "`number` by which they are drawn")
	flag.DurationVar(&o.budget, "budget", time.Hour, "`time` after which no further mutant is tried")
	flag.Parse()
	if err := runMutants(context.Background(), o); err != nil {
		log.Fatal(err)
	}
}

func runMutants(ctx context.Context, o options) error {
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	places, overlay, err := mutatePackage(dir, work)
	if err != nil {
		return err
	}
	tests, err := buildTests(ctx, dir, work, overlay)
	if err != nil {
		return err
	}
	if err := tests.recordReached(ctx, len(places)); err != nil {
		return err
	}
	all := mutantsOf(places)
	drawn := drawMutants(all, o.draw, o.seed)
	tried, alive := 0, 0
	for _, result := range tests.tryMutants(ctx, drawn, o.budget) {
		v := <-result
		if v.late {
			continue
		}
		if tried++; v.passes {
			alive++
			fmt.Println(v.mutant.text, v.why)
		}
	}
	fmt.Printf("%d of %d mutants were tried, and %d of these pass the tests\n", tried, len(all), alive)
	return nil
}

// place is a place for mutants.
type place struct {
	text string
	call bool // a removed call, else a condition
}

// mutant is one change of the package.
type mutant struct {
	place int
	value bool // of the condition; false leaves a call out
	text  string
}

func mutantsOf(places []place) (all []mutant) {
	for i, p := range places {
		if p.call {
			all = append(all, mutant{i, false, p.text + " is left out,"})
			continue
		}
		for _, value := range []bool{true, false} {
			all = append(all, mutant{i, value, fmt.Sprintf("%s is always %v,", p.text, value)})
		}
	}
	return all
}

// drawMutants returns n of the mutants, in their order; all of them if n is 0.
func drawMutants(all []mutant, n int, seed uint64) (drawn []mutant) {
	if n == 0 || n >= len(all) {
		return all
	}
	picked := rand.New(rand.NewPCG(seed, 0)).Perm(len(all))[:n] //nolint:gosec // the choice must be repeatable
	slices.Sort(picked)
	for _, i := range picked {
		drawn = append(drawn, all[i])
	}
	return drawn
}

// mutatePackage writes the files of the package with all mutants, and an overlay with them in the place of the real
// files.
func mutatePackage(dir, work string) (places []place, overlay string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, "", err
	}
	replace, pkg := map[string]string{}, ""
	for _, name := range files {
		if built, err := build.Default.MatchFile(dir, filepath.Base(name)); err != nil || !built || strings.HasSuffix(name, "_test.go") {
			continue // the go command reports the error
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
		ast.Inspect(syntax, f.visitNode)
		places = append(places, f.places...)
		replace[name] = filepath.Join(work, filepath.Base(name))
		if err := os.WriteFile(replace[name], f.mutatedText(), 0o600); err != nil {
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
	"fmt"
	"os"
	"sync"
)

var (
	mutantPlace   = -1
	mutantValue   bool
	mutantReached *os.File // takes down which places are reached; nil: nobody asks
	mutantSeen    sync.Map
)

func init() {
	_, _ = fmt.Sscanf(os.Getenv("MUTANT"), "%%d=%%t", &mutantPlace, &mutantValue)
	if name := os.Getenv("MUTANTS_REACHED"); name != "" {
		mutantReached, _ = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	}
}

func mutantOf(place int, real func() bool) bool {
	if place == mutantPlace {
		return mutantValue
	}
	if mutantReached != nil {
		if _, seen := mutantSeen.LoadOrStore(place, true); !seen {
			_, _ = fmt.Fprintln(mutantReached, place)
		}
	}
	return real()
}
`

// source is one file with the places of its conditions.
type source struct {
	fset   *token.FileSet
	text   []byte
	first  int // the number of its first place
	places []place
	known  map[ast.Expr]bool
	edits  []edit
}

// edit is a text to insert before an offset. At the same offset, ends come before beginnings: the inner end
// first, and the outer beginning first.
type edit struct {
	at    int
	order int
	text  string
}

func (f *source) visitNode(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.addPlace(n.Cond)
	case *ast.SwitchStmt:
		for _, c := range n.Body.List {
			for _, e := range c.(*ast.CaseClause).List {
				if n.Tag == nil {
					f.addPlace(e)
				}
			}
		}
	case *ast.BinaryExpr:
		if n.Op == token.LAND || n.Op == token.LOR {
			f.addPlace(n.X)
			f.addPlace(n.Y)
		}
	case *ast.BlockStmt:
		f.addCalls(n.List)
	case *ast.CaseClause:
		f.addCalls(n.Body)
	case *ast.CommClause:
		f.addCalls(n.Body)
	}
	return true
}

// unruly are calls that are not rules: without them nothing works, or only the log differs.
var unruly = []string{"panic", "Lock", "Unlock", "RLock", "RUnlock", "Debug", "Debugf", "Info", "Infof", "Warn", "Warnf", "Error", "Errorf"}

// addCalls makes call statements removable.
func (f *source) addCalls(statements []ast.Stmt) {
	for _, s := range statements {
		expression, ok := s.(*ast.ExprStmt)
		if !ok {
			continue
		}
		call, ok := expression.X.(*ast.CallExpr)
		if !ok {
			continue
		}
		name := ""
		switch of := call.Fun.(type) {
		case *ast.Ident:
			name = of.Name
		case *ast.SelectorExpr:
			name = of.Sel.Name
		}
		if !slices.Contains(unruly, name) {
			f.add(call, true, "if mutantOf(%d, func() bool { return true }) { ", " }")
		}
	}
}

// add makes a place of the text of a node, between two others.
func (f *source) add(n ast.Node, call bool, before, after string) {
	begin, end := f.fset.Position(n.Pos()), f.fset.Position(n.End())
	number := f.first + len(f.places)
	text := bytes.Join(bytes.Fields(f.text[begin.Offset:end.Offset]), []byte(" "))
	f.places = append(f.places, place{fmt.Sprintf("%s:%d: %s", begin.Filename, begin.Line, text), call})
	f.edits = append(f.edits, edit{begin.Offset, number + 1, fmt.Sprintf(before, number)}, edit{end.Offset, -number - 1, after})
}

// addPlace makes a mutant of a condition, and then of its parts.
func (f *source) addPlace(e ast.Expr) {
	if f.known[e] {
		return
	}
	f.known[e] = true
	f.add(e, false, "mutantOf(%d, func() bool { return ", " })")
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			f.addPlace(e.X)
			f.addPlace(e.Y)
		}
	case *ast.ParenExpr:
		f.addPlace(e.X)
	}
}

func (f *source) mutatedText() (out []byte) {
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
