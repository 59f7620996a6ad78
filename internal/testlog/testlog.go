// SPDX-License-Identifier: Apache-2.0

// Package testlog keeps what the programs of a test say until somebody asks for it.
//
// The guarantee: it is safe to write to and to read from at the same time.
package testlog

import (
	"bytes"
	"strings"
	"sync"
)

// tailSize is how much of the end is worth to be shown when a test fails.
const tailSize = 16 << 10

// Buffer keeps all that is written to it. Its zero value is empty.
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

// String returns all that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Tail returns the end of it, which is what a failure is about.
func (b *Buffer) Tail() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.buf.Bytes()
	return strings.ToValidUTF8(string(all[max(0, len(all)-tailSize):]), "?")
}

// Has reports whether text was written.
func (b *Buffer) Has(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Contains(b.buf.Bytes(), []byte(text))
}

// Clear forgets what was written.
func (b *Buffer) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Reset()
}
