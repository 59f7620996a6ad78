// SPDX-License-Identifier: Apache-2.0

package crilog

import (
	"bytes"
	"errors"
	"io"
)

const (
	// blockSize is the number of bytes in one read, from the end of a file.
	blockSize = 32 << 10
	// maxTailLine is the maximum length of a line in a tail. A longer line counts as several lines of this length. Otherwise, the last line of an
	// output without newlines would be the whole log.
	maxTailLine = 64 << 10
)

// tail finds the beginning of the last lines of a log. It gets the files from the newest to the oldest.
type tail struct {
	want  int
	found int
	begun bool  // a line was seen
	size  int64 // of the entries of the last found line

	buf  []byte
	from int64 // of buf in the file
	head [maxHead]byte
}

// isDone means that older files are not needed.
func (t *tail) isDone() bool { return t.found >= t.want }

// findStart returns the beginning of the wanted lines in the first size bytes of a file.
func (t *tail) findStart(f io.ReaderAt, size int64) (int64, error) {
	if t.want == 0 {
		return size, nil
	}
	block := make([]byte, blockSize)
	end := int64(-1) // the end of the current line; -1 if unknown
	for right := size; right > 0; right = t.from {
		t.from = max(0, right-blockSize)
		t.buf = block[:right-t.from]
		if _, err := f.ReadAt(t.buf, t.from); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		for i := bytes.LastIndexByte(t.buf, '\n'); i >= 0; i = bytes.LastIndexByte(t.buf[:i], '\n') {
			start := t.from + int64(i) + 1
			if stop, err := t.countLine(f, start, end); stop || err != nil {
				return end, err
			}
			end = start
		}
	}
	if stop, err := t.countLine(f, 0, end); stop || err != nil {
		return end, err
	}
	return 0, nil
}

// countLine counts the line between start and end, and reports whether it is one line too many.
func (t *tail) countLine(f io.ReaderAt, start, end int64) (stop bool, err error) {
	if end < 0 {
		return false, nil
	}
	head, err := t.headAt(f, start, end)
	if err != nil {
		return false, err
	}
	e, ok := parseLine(head)
	if !ok {
		return false, nil
	}
	// A part belongs to the last found line, unless there is none yet, because the part is unfinished, or that line is already long.
	if e.part && t.begun && t.size+end-start <= maxTailLine {
		t.size += end - start
		return false, nil
	}
	if t.found == t.want {
		return true, nil
	}
	t.found++
	t.begun, t.size = true, end-start
	return false, nil
}

// headAt returns the beginning of a line. The block may contain only a part of it.
func (t *tail) headAt(f io.ReaderAt, start, end int64) ([]byte, error) {
	length := min(end-start, maxHead)
	if i := start - t.from; i+length <= int64(len(t.buf)) {
		return t.buf[i : i+length], nil
	}
	head := t.head[:length]
	if _, err := f.ReadAt(head, start); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head, nil
}

// countSkipped returns the number of lines in r before the wanted lines.
func (t *tail) countSkipped(r io.Reader) (skip int, err error) {
	var l lines
	l.resetSource(r)
	count, begins := 0, true
	for {
		piece, err := l.nextLine(true)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		if begins {
			if e, ok := parseLine(piece); ok && !e.part {
				count++
			}
		}
		begins = bytes.HasSuffix(piece, newline)
	}
	skip = max(0, count-(t.want-t.found))
	t.found += count - skip
	return skip, nil
}
