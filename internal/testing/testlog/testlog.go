// SPDX-License-Identifier: Apache-2.0

// Package testlog keeps the output of a test's programs until a caller asks for it.
//
// The guarantee: it is safe to write to and to read from at the same time.
package testlog

import (
	"bytes"
	"strings"
	"sync"
)

// tailSize is the largest part of the end that is shown when a test fails.
const tailSize = 16 << 10

// Buffer keeps all of its input. Its zero value is empty.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

// Write keeps p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns the whole written text.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Tail returns the end of the output, where the cause of a failure is.
func (b *Buffer) Tail() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return tailText(b.buf.Bytes())
}

// Has reports whether text was written.
func (b *Buffer) Has(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Contains(b.buf.Bytes(), []byte(text))
}

// Clear discards the output so far.
func (b *Buffer) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Reset()
}

// Tail keeps only the end of its input, so that the memory of a long test's logs does not count as memory of the
// tested code. Its zero value is empty.
type Tail struct {
	mu  sync.Mutex
	buf []byte // guarded by mu; up to two tails, so that most writes move no bytes
}

// Write keeps the end of p.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buf == nil {
		t.buf = make([]byte, 0, 2*tailSize)
	}
	end := p[max(0, len(p)-tailSize):]
	if len(t.buf)+len(end) > cap(t.buf) {
		keep := tailSize - len(end)
		t.buf = t.buf[:copy(t.buf, t.buf[len(t.buf)-min(keep, len(t.buf)):])]
	}
	t.buf = append(t.buf, end...)
	return len(p), nil
}

// String returns the kept end of the input.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return tailText(t.buf)
}

// tailText returns the end of all, as text.
func tailText(all []byte) string {
	return strings.ToValidUTF8(string(all[max(0, len(all)-tailSize):]), "?")
}
