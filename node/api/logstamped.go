// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"
)

// maxStampBytes is more than the longest timestamp of RFC 3339 has.
const maxStampBytes = 64

// stampedReader filters lines that begin with a timestamp. A line may be of
// any length: only its head is looked at, and pieces of it are passed on as they come.
type stampedReader struct {
	source *bufio.Reader
	since  time.Time // older lines are left out
	stamps bool      // keep the timestamps
	skip   int       // so many lines at the beginning are left out

	whole   int    // complete lines read so far
	inLine  bool   // the next piece continues a line
	keep    bool   // whether that line is passed on
	err     error  // of source
	pending []byte // points into source's buffer, valid until the next read
}

func newStampedReader(r io.Reader, since time.Time, stamps bool) *stampedReader {
	return &stampedReader{source: bufio.NewReaderSize(r, 32<<10), since: since, stamps: stamps}
}

func (s *stampedReader) Read(p []byte) (int, error) {
	for len(s.pending) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		piece, err := s.source.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			s.err = err
		}
		if len(piece) > 0 {
			s.take(piece)
		}
	}
	n := copy(p, s.pending)
	s.pending = s.pending[n:]
	return n, nil
}

// take decides on a line at its first piece.
func (s *stampedReader) take(piece []byte) {
	if !s.inLine {
		s.keep = s.whole >= s.skip
		piece = s.head(piece)
	}
	s.inLine = len(piece) == 0 || piece[len(piece)-1] != '\n'
	if !s.inLine {
		s.whole++
	}
	if s.keep {
		s.pending = piece
	}
}

// head looks at the timestamp of a line and takes it away if it is not wanted.
func (s *stampedReader) head(piece []byte) []byte {
	blank := bytes.IndexByte(piece[:min(len(piece), maxStampBytes)], ' ')
	if blank < 0 {
		return piece
	}
	stamp, err := time.Parse(time.RFC3339Nano, string(piece[:blank]))
	if err != nil {
		return piece
	}
	if stamp.Before(s.since) {
		s.keep = false
	}
	if s.stamps {
		return piece
	}
	return piece[blank+1:]
}
