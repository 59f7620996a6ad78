// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"bytes"
	"io"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// terminalIO is a caller of exec and attach.
type terminalIO struct {
	in          io.Reader
	out, errors *buffer
	tty         bool
	sizes       chan api.TermSize
}

// Stdin returns the typed input.
func (t *terminalIO) Stdin() io.Reader { return t.in }

// Stdout returns the writer for the terminal output.
func (t *terminalIO) Stdout() io.WriteCloser { return t.out }

// Stderr returns nil if there is a terminal.
func (t *terminalIO) Stderr() io.WriteCloser {
	if t.errors == nil {
		return nil
	}
	return t.errors
}

// TTY reports whether there is a terminal.
func (t *terminalIO) TTY() bool { return t.tty }

// Resize returns nil if there is no terminal.
func (t *terminalIO) Resize() <-chan api.TermSize {
	if !t.tty {
		return nil
	}
	return t.sizes
}

// plainIO returns a caller without a terminal.
func plainIO(in io.Reader) *terminalIO {
	return &terminalIO{in: in, out: &buffer{}, errors: &buffer{}}
}

// ttyIO returns a caller with a terminal of 24 rows and 80 columns.
func ttyIO(in io.Reader) *terminalIO {
	t := &terminalIO{in: in, out: &buffer{}, tty: true, sizes: make(chan api.TermSize, 1)}
	t.sizes <- api.TermSize{Height: 24, Width: 80}
	return t
}

// buffer can be read while it is written.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

// Write adds to the buffer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

// Close does nothing: the written data are read afterwards.
func (b *buffer) Close() error { return nil }

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}
