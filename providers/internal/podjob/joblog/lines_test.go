// SPDX-License-Identifier: Apache-2.0

package joblog

import (
	"fmt"
	"strings"
	"testing"
)

// TestLogWithoutNewlines: output without newlines is returned in pieces, and the reader buffers little of it.
func TestLogWithoutNewlines(t *testing.T) {
	part := strings.Repeat("x", 16<<10)
	var l Lines
	got := 0
	for range 100 {
		line, ok := l.Line(fmt.Appendf(nil, "2026-01-01T00:00:00Z stdout P %s\n", part))
		if !ok {
			continue
		}
		got += len(line.Text)
		if len(line.Text) > MaxText || strings.Trim(string(line.Text), "x") != "" {
			t.Errorf("a piece of %d bytes", len(line.Text))
		}
	}
	if kept := 100*len(part) - got; kept != len(l.text) || kept >= MaxText {
		t.Errorf("%d bytes are given, %d are kept", got, len(l.text))
	}
	if line, ok := (&Lines{text: []byte("a")}).Line([]byte("2026-01-01T12:00:00Z stdout F b\n")); !ok || string(line.Text) != "ab\n" {
		t.Errorf("a line in two parts is %q", line.Text)
	}
}
