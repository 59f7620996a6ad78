// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogWithoutNewlines: what has no newline is given in pieces as it comes, and the reader keeps little of it.
func TestLogWithoutNewlines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	part := strings.Repeat("x", 16<<10)
	var file strings.Builder
	for range 100 {
		fmt.Fprintf(&file, "2026-01-01T12:00:00Z stdout P %s\n", part)
	}
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &logSource{path: path}
	defer s.Close()
	lines, err := s.Next(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for _, l := range lines {
		got += len(l.Text)
		if len(l.Text) > maxText || strings.Trim(string(l.Text), "x") != "" {
			t.Errorf("a piece of %d bytes", len(l.Text))
		}
	}
	if kept := 100*len(part) - got; kept != len(s.text) || kept >= maxText {
		t.Errorf("%d bytes are given, %d are kept", got, len(s.text))
	}
	if line, ok := (&logSource{text: []byte("a")}).line([]byte("2026-01-01T12:00:00Z stdout F b\n")); !ok || string(line.Text) != "ab\n" {
		t.Errorf("a line in two parts is %q", line.Text)
	}
}
