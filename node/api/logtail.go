// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"errors"
	"io"
)

// tailBytes bounds the memory for the tail of one log.
const tailBytes = 8 << 20

// tailReader reads the last lines of a source that ends. If the source has no more lines than requested, tailReader passes it on unchanged,
// even if the lines exceed tailBytes: then it stops counting. If the source has more lines, its oldest bytes are dropped instead.
type tailReader struct {
	source io.Reader
	lines  int

	loaded  bool
	buf     []byte
	count   int  // complete lines in buf
	dropped bool // a line was dropped: the provider did not apply Tail
	err     error
}

func (t *tailReader) Read(p []byte) (int, error) {
	if !t.loaded {
		t.load()
		t.loaded = true
		if t.err != nil && !errors.Is(t.err, io.EOF) {
			return 0, t.err
		}
	}
	if len(t.buf) > 0 {
		n := copy(p, t.buf)
		t.buf = t.buf[n:]
		return n, nil
	}
	if t.err != nil {
		return 0, t.err
	}
	return t.source.Read(p)
}

// load reads until the source ends, or until the data exceed tailBytes and must be passed on.
func (t *tailReader) load() {
	chunk := make([]byte, 32<<10)
	for {
		n, err := t.source.Read(chunk)
		t.buf = append(t.buf, chunk[:n]...)
		t.count += bytes.Count(chunk[:n], newline)
		t.dropLines()
		t.err = err
		if err != nil {
			return
		}
		if over := len(t.buf) - tailBytes; over > 0 {
			if !t.dropped {
				return
			}
			t.count -= bytes.Count(t.buf[:over], newline)
			t.buf = t.buf[over:]
		}
	}
}

var newline = []byte{'\n'}

func (t *tailReader) dropLines() {
	for t.total() > t.lines {
		t.buf = t.buf[bytes.IndexByte(t.buf, '\n')+1:]
		t.count--
		t.dropped = true
	}
}

// total returns the number of lines, including an unfinished line at the end.
func (t *tailReader) total() int {
	if len(t.buf) > 0 && t.buf[len(t.buf)-1] != '\n' {
		return t.count + 1
	}
	return t.count
}
