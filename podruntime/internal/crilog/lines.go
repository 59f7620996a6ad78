// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"bytes"
	"errors"
	"io"
)

// bufferSize bounds the memory of a reader. Lines of runtimes are of at most 16 KiB.
const bufferSize = 32 << 10

// errMustRead means that the buffer does not have the complete next line.
var errMustRead = errors.New("must read")

// lines splits its source into lines. After io.EOF, it can continue when the source has more data.
type lines struct {
	source io.Reader
	buf    []byte
	r, w   int // the range of buffered bytes
}

// nextLine returns a line with its newline, or the part of a longer line that fits into the buffer. It is valid until the next call. At io.EOF, an
// unfinished line stays in the buffer. Without mayRead, the source is not read.
func (l *lines) nextLine(mayRead bool) ([]byte, error) {
	looked := l.r
	for {
		if i := bytes.IndexByte(l.buf[looked:l.w], '\n'); i >= 0 {
			piece := l.buf[l.r : looked+i+1]
			l.r = looked + i + 1
			return piece, nil
		}
		if !mayRead {
			return nil, errMustRead
		}
		if l.r > 0 {
			l.w = copy(l.buf, l.buf[l.r:l.w])
			l.r = 0
		}
		if l.w == len(l.buf) {
			return l.takeRest(), nil
		}
		looked = l.w
		n, err := l.source.Read(l.buf[l.w:])
		l.w += n
		if n == 0 && err != nil {
			return nil, err
		}
	}
}

// takeRest takes the unfinished line at the end.
func (l *lines) takeRest() []byte {
	piece := l.buf[l.r:l.w]
	l.r, l.w = 0, 0
	return piece
}

func (l *lines) resetSource(source io.Reader) {
	if l.buf == nil {
		l.buf = make([]byte, bufferSize)
	}
	l.source, l.r, l.w = source, 0, 0
}
