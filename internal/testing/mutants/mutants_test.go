// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// of is a package. Its tests check one of two conditions and one of two calls.
var of = map[string]string{
	"go.mod": "module example.org/m\ngo 1.26\n",
	"m.go": `package m

var calls int

func odd(n int) bool {
	if n%2 == 1 && n > 0 {
		count()
		return true
	}
	count()
	return false
}

func count() { calls++ }

func unused() { count() }
`,
	"m_other.go": `//go:build neverbuilt

package m

func other(n int) bool { return n > 1 && n > 2 }
`,
	"m_test.go": `package m

import "testing"

func TestOdd(t *testing.T) {
	if !odd(1) || calls != 1 {
		t.Fail()
	}
}

func TestEven(t *testing.T) {
	if odd(2) {
		t.Fail()
	}
}
`,
}

// write writes the package into a new folder.
func write(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range of {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestMutantsAreFound: mutants of untested code pass and are listed, including code that no test reaches. Files
// that are not built have no mutants.
func TestMutantsAreFound(t *testing.T) {
	out := capture(t, func() error { return runMutants(t.Context(), options{dir: write(t), budget: time.Hour}) })
	want := `m.go:10: count() is left out, and the tests pass (1 reach it)
m.go:6: n > 0 is always true, and the tests pass (1 reach it)
m.go:16: count() is left out, and no test reaches it
9 of 9 mutants were tried, and 3 of these pass the tests
`
	if out != want {
		t.Errorf("it says:\n%s\nwant:\n%s", out, want)
	}
}

// TestDrawnMutantsAreThoseOfTheSeed: the same seed draws the same mutants, and another seed draws others.
func TestDrawnMutantsAreThoseOfTheSeed(t *testing.T) {
	all := make([]mutant, 100)
	for i := range all {
		all[i].place = i
	}
	first, again, other := drawMutants(all, 10, 1), drawMutants(all, 10, 1), drawMutants(all, 10, 2)
	if len(first) != 10 || !slices.Equal(first, again) || slices.Equal(first, other) {
		t.Errorf("drawn %v, again %v, with another seed %v", first, again, other)
	}
	if !slices.IsSortedFunc(first, func(a, b mutant) int { return a.place - b.place }) {
		t.Errorf("drawn %v, want them in their order", first)
	}
}

// TestNoMutantIsTriedWhenTheTimeIsOver: the report gives the number of tried mutants.
func TestNoMutantIsTriedWhenTheTimeIsOver(t *testing.T) {
	out := capture(t, func() error { return runMutants(t.Context(), options{dir: write(t), draw: 4, budget: -time.Hour}) })
	if want := "0 of 9 mutants were tried, and 0 of these pass the tests\n"; out != want {
		t.Errorf("it says:\n%s\nwant:\n%s", out, want)
	}
}

// capture returns the output of f.
func capture(t *testing.T, f func() error) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stdout := os.Stdout
	os.Stdout = file
	err = f()
	os.Stdout = stdout
	if err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
