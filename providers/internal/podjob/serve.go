// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podjob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// serve accepts sessions at the socket until ctx ends. Only the user has access to the directory of the socket.
func (s *supervisor) serve(ctx context.Context, l net.Listener) {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.countSessions(1)
		s.wg.Go(func() {
			defer s.countSessions(-1)
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			s.session(ctx, conn)
		})
	}
}

// session serves one request of a node, and reports its result.
func (s *supervisor) session(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, first, err := ReadFrame(conn)
	if err != nil {
		return
	}
	var req Request
	if err := json.Unmarshal(first, &req); err != nil {
		return
	}
	stdin, typed := io.Pipe()
	sess := &session{req: req, frames: NewFrames(conn), stdin: stdin, sizes: make(chan api.TermSize, 8)}
	go func() {
		defer cancel() // the client has disconnected
		defer close(sess.sizes)
		sess.receive(conn, typed)
	}()
	ns, name := s.bundle.Pod.Namespace, s.bundle.Pod.Name
	switch req.Op {
	case OpExec:
		err = s.pods.RunInContainer(ctx, ns, name, req.Container, req.Command, sess)
	case OpAttach:
		err = s.pods.AttachToContainer(ctx, ns, name, req.Container, sess)
	case OpPort:
		err = s.pods.PortForward(ctx, ns, name, req.Port, sess)
	default:
		err = fmt.Errorf("unknown operation %q: the job runs another version", req.Op)
	}
	_ = stdin.Close()
	if errors.Is(err, errBehind) {
		_ = conn.SetWriteDeadline(time.Now().Add(behindTime))
	}
	var result Result
	var exited utilexec.ExitError
	switch {
	case errors.As(err, &exited):
		result = Result{Exit: exited.ExitStatus(), Error: err.Error()}
	case err != nil:
		result = Result{Error: err.Error()}
	}
	_ = sess.frames.SendJSON(FrameResult, result)
}

// behindTime is the time limit for sending the error to a slow reader.
const behindTime = time.Second

// session is one exec, attach or port-forward. It implements api.AttachIO, and the connection of a port.
type session struct {
	req    Request
	frames *Frames
	stdin  *io.PipeReader
	sizes  chan api.TermSize
}

func (s *session) receive(conn io.Reader, typed *io.PipeWriter) {
	for {
		kind, data, err := ReadFrame(conn)
		switch {
		case err != nil:
			_ = typed.CloseWithError(io.ErrUnexpectedEOF)
			return
		case kind == FrameInput:
			_, _ = typed.Write(data) // after the end of the session, the data is dropped
		case kind == FrameInputEnd:
			_ = typed.Close()
		case kind == FrameResize:
			var size Size
			if json.Unmarshal(data, &size) == nil {
				select {
				case s.sizes <- api.TermSize{Width: size.Width, Height: size.Height}:
				default:
				}
			}
		}
	}
}

func (s *session) Stdin() io.Reader {
	if !s.req.Stdin {
		return nil
	}
	return s.stdin
}

func (s *session) Stdout() io.WriteCloser {
	if !s.req.Stdout {
		return nil
	}
	return output{s.frames, FrameOutput}
}

func (s *session) Stderr() io.WriteCloser {
	if !s.req.Stderr {
		return nil
	}
	return output{s.frames, FrameError}
}

func (s *session) TTY() bool                   { return s.req.TTY }
func (s *session) Resize() <-chan api.TermSize { return s.sizes }
func (s *session) Read(b []byte) (int, error)  { return s.stdin.Read(b) }
func (s *session) Write(b []byte) (int, error) { return output{s.frames, FrameOutput}.Write(b) }
func (s *session) Close() error                { return s.stdin.Close() }
