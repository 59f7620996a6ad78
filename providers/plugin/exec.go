// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// sessionStream is the stream of an exec or attach.
type sessionStream = grpc.BidiStreamingClient[rpc.SessionInput, rpc.SessionOutput]

// RunInContainer runs a command through the plugin.
func (p *plugin) RunInContainer(ctx context.Context, namespace, podName, containerName string, cmd []string, attach api.AttachIO) error {
	start := &rpc.SessionStart{Namespace: namespace, Pod: podName, Container: containerName, Command: cmd}
	return p.attachStreams(ctx, rpc.Ability_ABILITY_EXEC, "exec", start, attach, func(ctx context.Context, s *session) (sessionStream, error) {
		return s.RunInContainer(ctx)
	})
}

func (p *plugin) attachStreams(ctx context.Context, ability rpc.Ability, what string, start *rpc.SessionStart, attach api.AttachIO, open func(context.Context, *session) (sessionStream, error)) error {
	if err := p.requireAbility(ability, what); err != nil {
		return err
	}
	s, err := p.connectedSession()
	if err != nil {
		return err
	}
	start.Stdin, start.Stdout, start.Stderr, start.Tty = attach.Stdin() != nil, attach.Stdout() != nil, attach.Stderr() != nil, attach.TTY()
	start.Caller = callerOf(ctx)
	ctx, cancel := s.boundContext(ctx)
	defer cancel()
	stream, err := open(ctx, s)
	if err != nil {
		_, err = p.decodeError(ctx, s, err, nil)
		return err
	}
	in := sender{stream: stream}
	if err := in.sendInput(&rpc.SessionInput{Input: &rpc.SessionInput_Start{Start: start}}); err != nil && !errors.Is(err, io.EOF) { // after io.EOF, Recv returns the reason
		_, err = p.decodeError(ctx, s, err, nil)
		return err
	}
	in.beginSending(ctx, attach)
	code, err := receiveOutput(stream, attach)
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("plugin %s ended the %s without an exit code: the session was cut", p.agreed.name, what)
	case err != nil:
		_, err = p.decodeError(ctx, s, err, stream.Trailer())
		return err
	case code != 0:
		return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code), Code: int(code)}
	}
	return nil
}

// sender sends one message at a time.
type sender struct {
	stream sessionStream
	mu     sync.Mutex
}

func (s *sender) sendInput(message *rpc.SessionInput) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream.Send(message)
}

// beginSending sends the input of the client and the sizes of its terminal. It ends with ctx, or with the streams of
// attach, which the caller closes.
func (s *sender) beginSending(ctx context.Context, attach api.AttachIO) {
	if in := attach.Stdin(); in != nil {
		go func() {
			_ = wire.CopyChunks(in, func(data []byte) error {
				return s.sendInput(&rpc.SessionInput{Input: &rpc.SessionInput_Stdin{Stdin: data}})
			})
			_ = s.sendInput(&rpc.SessionInput{Input: &rpc.SessionInput_StdinClosed{StdinClosed: true}}) // an error means that the session has ended
		}()
	}
	if sizes := attach.Resize(); sizes != nil {
		go func() {
			for {
				select {
				case size, ok := <-sizes:
					if !ok || s.sendInput(&rpc.SessionInput{Input: &rpc.SessionInput_Resize{Resize: &rpc.TermSize{Width: uint32(size.Width), Height: uint32(size.Height)}}}) != nil {
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}()
	}
}

// receiveOutput writes the output until the exit code or an error arrives. The error is io.EOF if the session ended
// without an exit code.
func receiveOutput(stream sessionStream, attach api.AttachIO) (code int32, err error) {
	for {
		message, err := stream.Recv()
		if err != nil {
			return 0, err
		}
		var to io.Writer
		var data []byte
		switch out := message.GetOutput().(type) {
		case *rpc.SessionOutput_ExitCode:
			return out.ExitCode, nil
		case *rpc.SessionOutput_Stdout:
			if w := attach.Stdout(); w != nil {
				to, data = w, out.Stdout
			}
		case *rpc.SessionOutput_Stderr:
			if w := attach.Stderr(); w != nil {
				to, data = w, out.Stderr
			}
		}
		if to == nil {
			continue // not requested
		}
		if _, err := to.Write(data); err != nil {
			return 0, fmt.Errorf("write to the client: %w", err)
		}
	}
}

// trailerOf returns the trailing metadata of a stream. The stream may not have begun.
func trailerOf(stream grpc.ClientStream) metadata.MD {
	if stream == nil {
		return nil
	}
	return stream.Trailer()
}
