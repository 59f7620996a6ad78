// SPDX-License-Identifier: Apache-2.0

package crilog

import "bytes"

// shape converts entries to output: it joins parts, and adds timestamps at the beginning of lines.
type shape struct {
	pending []byte // the next output; points into head or the buffer of the file
	then    []byte // output after pending
	head    [1 + maxHead]byte

	inLine bool // the next piece continues the entry
	keep   bool // the entry is shown
	part   bool // the entry is a part of a line

	atStart bool // the output is at the beginning of a line
	joins   bool // or within one of this stream
	stderr  bool
}

// beginEntry prepares the output for an entry. It breaks a line that the other stream interrupts.
func (s *shape) beginEntry(e entry, stamps bool) {
	head := s.head[:0]
	goesOn := !s.atStart && s.joins && s.stderr == e.stderr
	if !s.atStart && !goesOn {
		head = append(head, '\n')
	}
	if stamps && !goesOn {
		head = append(e.at.AppendFormat(head, stampLayout), ' ')
	}
	s.pending = head
	s.part, s.joins, s.stderr, s.atStart = e.part, e.part, e.stderr, false
}

// addPiece writes a piece of the text of the entry. The newline at its end ends the line, or is dropped if the entry
// is a part.
func (s *shape) addPiece(piece []byte) {
	if ends := bytes.HasSuffix(piece, newline); ends && s.part {
		piece = piece[:len(piece)-1]
	} else if ends {
		s.atStart = true
	}
	if len(s.pending) == 0 {
		s.pending = piece
	} else {
		s.then = piece
	}
}

// takePending moves pending output to p.
func (s *shape) takePending(p []byte) int {
	n := copy(p, s.pending)
	s.pending = s.pending[n:]
	if len(s.pending) == 0 {
		s.pending, s.then = s.then, nil
	}
	return n
}
