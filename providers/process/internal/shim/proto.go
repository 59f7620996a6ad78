// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// kind is the kind of a frame on a shim's socket.
type kind byte

const (
	frameRequest kind = 'q' // request
	frameDone    kind = 'd' // done: the last frame of an answer
	frameStdin   kind = 'i'
	frameEOF     kind = 'c' // no more stdin
	frameStdout  kind = 'o'
	frameStderr  kind = 'r'
	frameResize  kind = 'w' // Size
)

// maxFrame limits the memory that one side can make the other side allocate.
const maxFrame = 1 << 20

// The operations of a request.
const (
	opSignal = "signal"
	opKill   = "kill"
	opReopen = "reopen"
	opAttach = "attach"
	opExec   = "exec"
	opWait   = "wait"
)

type request struct {
	Op     string
	Signal int      `json:",omitempty"`
	Argv   []string `json:",omitempty"`
	TTY    bool     `json:",omitempty"`
	Stdin  bool     `json:",omitempty"`
	// Kill is for opExec: the command is killed when the caller closes the connection. Callers always set it,
	// because supervisors of earlier versions kill a command only if it is set.
	Kill bool `json:",omitempty"`
	// Sandbox is for opKill: the container's sandbox is killed, too.
	Sandbox bool `json:",omitempty"`
}

type done struct {
	Error    string `json:",omitempty"`
	ExitCode int    `json:",omitempty"`
	// NotStarted is true if the command could not be started.
	NotStarted bool `json:",omitempty"`
}

// Size is the size of a terminal in characters.
type Size struct{ Width, Height uint16 }

// frames writes frames. It is safe for concurrent use.
type frames struct {
	mu sync.Mutex
	w  io.Writer
}

func (f *frames) write(k kind, payload []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	header := make([]byte, 5, 5+len(payload))
	header[0] = byte(k)
	binary.BigEndian.PutUint32(header[1:], uint32(len(payload)))
	_, err := f.w.Write(append(header, payload...))
	return err
}

func (f *frames) writeJSON(k kind, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return f.write(k, data)
}

func readFrame(r io.Reader) (kind, []byte, error) {
	k, n, err := readHeader(r)
	if err != nil {
		return 0, nil, err
	}
	payload := make([]byte, n)
	_, err = io.ReadFull(r, payload)
	return k, payload, err
}

// readHeader reads the header of a frame: its kind and the size of its payload.
func readHeader(r io.Reader) (kind, int, error) {
	var header [5]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, 0, err
	}
	n := binary.BigEndian.Uint32(header[1:])
	if n > maxFrame {
		return 0, 0, fmt.Errorf("a frame of %d bytes: want at most %d", n, maxFrame)
	}
	return kind(header[0]), int(n), nil
}

// frameWriter is an io.Writer that writes frames of one kind.
type frameWriter struct {
	f *frames
	k kind
}

func (w frameWriter) Write(p []byte) (int, error) {
	for n := 0; n < len(p); n += 32 << 10 {
		if err := w.f.write(w.k, p[n:min(len(p), n+32<<10)]); err != nil {
			return n, err
		}
	}
	return len(p), nil
}
