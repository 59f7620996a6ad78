// SPDX-License-Identifier: Apache-2.0

package podjob

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Kinds of frames. All data between a node and a job goes through the standard input and output of one process.
const (
	FrameInput    = byte(iota) // for the command, or the port
	FrameInputEnd              // the end of the input
	FrameResize                // a Size
	FrameOutput
	FrameError
	FrameResult // a Result; the last one
)

// maxFrame is the maximum size of a frame.
const maxFrame = 1 << 20

// frameEnd ends a frame: the transport of a stream may buffer data until the end of a line.
const frameEnd = '\n'

// Request is the first frame that a node sends: of the kind FrameInput.
type Request struct {
	Op        string // exec, attach or port
	Container string
	Command   []string
	TTY       bool
	Stdin     bool
	Stdout    bool
	Stderr    bool
	Port      int32
}

// Operations.
const (
	OpExec   = "exec"
	OpAttach = "attach"
	OpPort   = "port"
)

// Size is the size of a terminal.
type Size struct{ Width, Height uint16 }

// Result is the result of a session.
type Result struct {
	// Exit is the exit code of a failed command.
	Exit  int
	Error string
}

// Frames writes frames, one at a time.
type Frames struct {
	mu  sync.Mutex
	w   io.Writer
	err error // guarded by mu: half a frame may have been written
}

// NewFrames returns Frames that write to w.
func NewFrames(w io.Writer) *Frames { return &Frames{w: w} }

// Send writes data as one frame, or as several frames if the data is long.
func (f *Frames) Send(kind byte, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	for first := true; first || len(data) > 0; first = false {
		part := data[:min(len(data), maxFrame)]
		data = data[len(part):]
		head := make([]byte, 5, 5+len(part)+1)
		head[0] = kind
		binary.BigEndian.PutUint32(head[1:], uint32(len(part))) //nolint:gosec // it is bounded
		if _, err := f.w.Write(append(append(head, part...), frameEnd)); err != nil {
			f.err = err
			return err
		}
	}
	return nil
}

// SendJSON writes v as a frame.
func (f *Frames) SendJSON(kind byte, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return f.Send(kind, data)
}

// ReadFrame reads one frame.
func ReadFrame(r io.Reader) (byte, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes: this is not the other side of a stream", n)
	}
	data := make([]byte, n+1)
	if _, err := io.ReadFull(r, data); err != nil {
		return 0, nil, err
	}
	if data[n] != frameEnd {
		return 0, nil, errors.New("a frame without its end: this is not the other side of a stream")
	}
	return head[0], data[:n], nil
}

// output is one stream of a session.
type output struct {
	frames *Frames
	kind   byte
}

func (o output) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if err := o.frames.Send(o.kind, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (output) Close() error { return nil }
