// SPDX-License-Identifier: Apache-2.0

package providerrpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// sessionStream is the stream of an exec or attach.
type sessionStream = grpc.BidiStreamingServer[rpc.SessionInput, rpc.SessionOutput]

// RunInContainer runs a command.
func (s *server) RunInContainer(stream rpc.Provider_RunInContainerServer) error {
	p, ok := s.provider.(execProvider)
	if !ok {
		return lackError("RunInContainer")
	}
	return runSession(stream, func(ctx context.Context, start *rpc.SessionStart, attach api.AttachIO) error {
		return p.RunInContainer(ctx, start.GetNamespace(), start.GetPod(), start.GetContainer(), start.GetCommand(), attach)
	})
}

// AttachToContainer connects the stream to the main process.
func (s *server) AttachToContainer(stream rpc.Provider_AttachToContainerServer) error {
	p, ok := s.provider.(attachProvider)
	if !ok {
		return lackError("AttachToContainer")
	}
	return runSession(stream, func(ctx context.Context, start *rpc.SessionStart, attach api.AttachIO) error {
		return p.AttachToContainer(ctx, start.GetNamespace(), start.GetPod(), start.GetContainer(), attach)
	})
}

// runSession runs an exec or attach over stream. It sends an exit code as a message, and returns any other error.
func runSession(stream sessionStream, run func(context.Context, *rpc.SessionStart, api.AttachIO) error) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	start := first.GetStart()
	if start == nil {
		return failStream(stream, errdefs.InvalidInput("the first message of a session must be start"), false)
	}
	io := newSessionIO(start, stream)
	ctx, cancel := context.WithCancel(withCaller(stream.Context(), start.GetCaller()))
	defer cancel()
	go io.receiveInput() // ends with the stream, which ends when this function returns
	err = run(ctx, start, io)
	io.unblockReceiver()
	code := int32(0)
	var exit utilexec.ExitError
	switch {
	case errors.As(err, &exit) && exit.Exited():
		code = int32(exit.ExitStatus()) //nolint:gosec // an exit status has eight bits
	case err != nil:
		return failStream(stream, err, false)
	}
	return io.sendOutput(&rpc.SessionOutput{Output: &rpc.SessionOutput_ExitCode{ExitCode: code}})
}

// sessionIO is the api.AttachIO of an exec or attach for the provider.
type sessionIO struct {
	start  *rpc.SessionStart
	stream sessionStream
	in     *io.PipeReader
	input  *io.PipeWriter
	resize chan api.TermSize

	sending sync.Mutex // gRPC allows one Send at a time
}

func newSessionIO(start *rpc.SessionStart, stream sessionStream) *sessionIO {
	s := &sessionIO{start: start, stream: stream}
	s.in, s.input = io.Pipe()
	if start.GetTty() {
		s.resize = make(chan api.TermSize, 1)
	}
	return s
}

// unblockReceiver unblocks receiveInput if it waits for the provider to read.
func (s *sessionIO) unblockReceiver() { _ = s.in.Close() }

// receiveInput handles the messages of the node until the stream ends.
func (s *sessionIO) receiveInput() {
	if s.resize != nil {
		defer close(s.resize)
	}
	for {
		message, err := s.stream.Recv()
		if err != nil {
			_ = s.input.CloseWithError(err) // io.EOF at the end of the node's input
			return
		}
		switch in := message.GetInput().(type) {
		case *rpc.SessionInput_Stdin:
			_, _ = s.input.Write(in.Stdin) // fails if the provider has stopped reading; go on, because sizes may follow
		case *rpc.SessionInput_StdinClosed:
			_ = s.input.Close()
		case *rpc.SessionInput_Resize:
			s.setSize(api.TermSize{Width: uint16(in.Resize.GetWidth()), Height: uint16(in.Resize.GetHeight())}) //nolint:gosec // of 16 bits at the node
		}
	}
}

// setSize keeps the latest size for the provider to read.
func (s *sessionIO) setSize(size api.TermSize) {
	if s.resize == nil {
		return
	}
	select {
	case <-s.resize:
	default:
	}
	s.resize <- size // does not block: this is the only sender
}

func (s *sessionIO) sendOutput(message *rpc.SessionOutput) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.stream.Send(message)
}

// Stdin returns the input of the client.
func (s *sessionIO) Stdin() io.Reader {
	if !s.start.GetStdin() {
		return nil
	}
	return s.in
}

// Stdout returns a writer to the client.
func (s *sessionIO) Stdout() io.WriteCloser {
	if !s.start.GetStdout() {
		return nil
	}
	return sessionWriter{s, func(data []byte) *rpc.SessionOutput {
		return &rpc.SessionOutput{Output: &rpc.SessionOutput_Stdout{Stdout: data}}
	}}
}

// Stderr returns a writer to the client.
func (s *sessionIO) Stderr() io.WriteCloser {
	if !s.start.GetStderr() {
		return nil
	}
	return sessionWriter{s, func(data []byte) *rpc.SessionOutput {
		return &rpc.SessionOutput{Output: &rpc.SessionOutput_Stderr{Stderr: data}}
	}}
}

// TTY reports whether the client has requested a terminal.
func (s *sessionIO) TTY() bool { return s.start.GetTty() }

// Resize returns the channel with the sizes of the terminal.
func (s *sessionIO) Resize() <-chan api.TermSize { return s.resize }

type sessionWriter struct {
	session *sessionIO
	message func([]byte) *rpc.SessionOutput
}

func (w sessionWriter) Write(p []byte) (int, error) {
	for sent := 0; sent < len(p); sent += wire.ChunkBytes {
		if err := w.session.sendOutput(w.message(bytes.Clone(p[sent:min(sent+wire.ChunkBytes, len(p))]))); err != nil {
			return sent, err
		}
	}
	return len(p), nil
}

// Close does nothing: the output ends with the session.
func (w sessionWriter) Close() error { return nil }
