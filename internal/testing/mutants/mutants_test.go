// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMutantsAreFound: of a package whose test looks at one of two conditions, the mutants of the other one pass.
func TestMutantsAreFound(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/m\ngo 1.26\n",
		"m.go": `package m

func odd(n int) bool {
	if n%2 == 1 && n > 0 {
		return true
	}
	return false
}
`,
		"m_test.go": `package m

import "testing"

func Test(t *testing.T) {
	if !odd(1) || odd(2) {
		t.Fail()
	}
}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	places, _, err := mutate(dir, work)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(places, "\n"), "m.go:4: n%2 == 1 && n > 0\nm.go:4: n%2 == 1\nm.go:4: n > 0"; got != want {
		t.Errorf("places:\n%s\nwant:\n%s", got, want)
	}
	out := capture(t, func() error { return run(t.Context(), dir) })
	if want := "m.go:4: n > 0 is always true, and the tests pass\n6 mutants, 1 of them pass the tests\n"; out != want {
		t.Errorf("it says:\n%s\nwant:\n%s", out, want)
	}
}

// capture returns what f prints.
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
