// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"io"
	"sync"

	"github.com/gorilla/websocket"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// Streams are the streams of a command in a container. They implement api.AttachIO.
type Streams struct {
	In       io.Reader // nil: the command has no input
	Out, Err io.Writer // a terminal has no Err
	Terminal bool
	Sizes    <-chan api.TermSize // of the terminal; nil: none
}

type noClose struct{ io.Writer }

func (noClose) Close() error { return nil }

// Stdin implements api.AttachIO.
func (s *Streams) Stdin() io.Reader { return s.In }

// Stdout implements api.AttachIO.
func (s *Streams) Stdout() io.WriteCloser { return noClose{s.Out} }

// Stderr implements api.AttachIO.
func (s *Streams) Stderr() io.WriteCloser {
	if s.Terminal {
		return nil
	}
	return noClose{s.Err}
}

// TTY implements api.AttachIO.
func (s *Streams) TTY() bool { return s.Terminal }

// Resize implements api.AttachIO.
func (s *Streams) Resize() <-chan api.TermSize {
	if s.Sizes != nil {
		return s.Sizes
	}
	none := make(chan api.TermSize)
	close(none)
	return none
}

// Frames writes each piece of output as a binary message of a WebSocket connection.
type Frames struct {
	Conn *websocket.Conn
	mu   sync.Mutex
}

// Write implements io.Writer.
func (f *Frames) Write(data []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.Conn.WriteMessage(websocket.BinaryMessage, data); err != nil {
		return 0, err
	}
	return len(data), nil
}
