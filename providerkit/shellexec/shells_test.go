// SPDX-License-Identifier: Apache-2.0

package shellexec

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestShellOfARunIsAskedForOnce checks a run with a shell, runs without one, and a failed request.
func TestShellOfARunIsAskedForOnce(t *testing.T) {
	var s Shells
	tries := 0
	prints := func(command []string) (string, error) { tries++; return command[2][len("echo "):] + "\n", nil }
	refuses := func([]string) (string, error) { tries++; return "sh: not found", nil }
	fails := func([]string) (string, error) { tries++; return "", errors.New("the service is away") }
	for i, c := range []struct {
		run   string
		try   func([]string) (string, error)
		has   bool
		fails bool
		tries int
	}{
		{"a", refuses, false, false, 1}, {"a", fails, false, true, 2}, {"a", prints, true, false, 3}, {"a", fails, true, false, 3}, {"b", refuses, false, false, 4},
	} {
		has, err := s.Has(c.run, c.try)
		if has != c.has || (err != nil) != c.fails || tries != c.tries {
			t.Errorf("%d: got %t, %v after %d tries, want %t, an error: %t, after %d", i, has, err, tries, c.has, c.fails, c.tries)
		}
	}
}

// TestLineIsSplitAgain checks words that a shell would change, by a shell.
func TestLineIsSplitAgain(t *testing.T) {
	words := []string{"a b", "it's", `"$HOME"`, "", "\\", "*", "x\ny"}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", Line(append([]string{"printf", `%s\000`}, words...))).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, words) {
		t.Errorf("got %q, want %q", got, words)
	}
}
