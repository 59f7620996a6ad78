// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"bytes"
	"testing"
	"time"
)

func FuzzParse(f *testing.F) {
	for _, line := range []string{
		at(0, "stdout F text"), at(0, "stderr P "), "2026-01-01T01:00:00.5+01:00 stdout F:x a b", "", " ", "   ", "2026-01-01T00:00:00Z stdout F", "\x00\xff",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, ok := parseLine(line)
		if !ok {
			return
		}
		if !bytes.HasSuffix(bytes.TrimSuffix(line, newline), e.text) || e.at.IsZero() && e.at.Year() != 1 {
			t.Fatalf("%q is read as %q at %s", line, e.text, e.at)
		}
		// The parsed line is written as a runtime writes it, and parsed again.
		again := e.at.AppendFormat(nil, stampLayout)
		again = append(again, map[bool]string{false: " stdout ", true: " stderr "}[e.stderr]...)
		again = append(again, map[bool]string{false: "F ", true: "P "}[e.part]...)
		again = append(again, e.text...)
		b, ok := parseLine(append(again, '\n'))
		if !ok || !b.at.Equal(e.at) || b.stderr != e.stderr || b.part != e.part || !bytes.Equal(b.text, e.text) {
			t.Fatalf("%q is read as %+v, and %q as %+v", line, e, again, b)
		}
		var s shape
		s.beginEntry(e, true)
		if len(s.pending) > len(s.head) || len(s.pending) < len(time.RFC3339) {
			t.Fatalf("head %q", s.pending)
		}
	})
}
