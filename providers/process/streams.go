// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// maxOutput limits the output that ExecSync keeps of each stream.
const maxOutput = 16 << 20

// runningContainer returns a running container.
func (r *Runtime) runningContainer(id string) (*container, error) {
	c, err := r.findContainer(id)
	if err != nil {
		return nil, err
	}
	state, err := c.readState()
	if err == nil && (!state.Started() || state.Ended()) {
		err = status.Errorf(codes.FailedPrecondition, "container %s does not run", id)
	}
	return c, err
}

// ExecSync runs a command and returns its output. It kills the command after timeout; 0 means no timeout.
func (r *Runtime) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) ([]byte, []byte, error) {
	c, err := r.runningContainer(id)
	if err != nil {
		return nil, nil, err
	}
	if len(cmd) == 0 {
		return nil, nil, status.Error(codes.InvalidArgument, "the command is empty")
	}
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		bounded, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	var stdout, stderr limited
	code, err := shim.Exec(bounded, c.dir, shim.Command{Argv: cmd}, shim.Streams{Stdout: &stdout, Stderr: &stderr})
	switch {
	case err != nil && ctx.Err() == nil && bounded.Err() != nil:
		err = status.Errorf(codes.DeadlineExceeded, "command %q timed out after %s", cmd, timeout)
	case err == nil && code != 0:
		err = exitError(cmd, code)
	case err != nil:
		err = status.Error(codes.Unknown, err.Error())
	}
	return stdout.Bytes(), stderr.Bytes(), err
}

func exitError(cmd []string, code int) error {
	return utilexec.CodeExitError{Err: fmt.Errorf("command %q exited with %d", cmd, code), Code: code}
}

// limited keeps the first maxOutput bytes, and discards the rest without an error.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxOutput - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// StreamExec runs a command with the streams of attach.
func (r *Runtime) StreamExec(ctx context.Context, id string, cmd []string, attach api.AttachIO) error {
	c, err := r.runningContainer(id)
	if err != nil {
		return err
	}
	if len(cmd) == 0 {
		return status.Error(codes.InvalidArgument, "the command is empty")
	}
	streams, stop := streamsOf(ctx, attach)
	defer stop()
	code, err := shim.Exec(ctx, c.dir, shim.Command{Argv: cmd, TTY: attach.TTY()}, streams)
	if errors.Is(err, shim.ErrNotStarted) {
		writeComplaint(streams, err)
		return utilexec.CodeExitError{Err: err, Code: code}
	}
	if err == nil && code != 0 {
		err = exitError(cmd, code)
	}
	return err
}

// writeComplaint writes the error to the user's stream: a client that gets an exit code does not show the error.
func writeComplaint(s shim.Streams, err error) {
	if out := cmp.Or(s.Stderr, s.Stdout); out != nil { // a terminal has no stderr
		_, _ = fmt.Fprintf(out, "%v\r\n", err)
	}
}

// StreamAttach connects attach to the streams of the main process.
func (r *Runtime) StreamAttach(ctx context.Context, id string, attach api.AttachIO) error {
	c, err := r.runningContainer(id)
	if err != nil {
		return err
	}
	streams, stop := streamsOf(ctx, attach)
	defer stop()
	return shim.Attach(ctx, c.dir, streams)
}

// streamsOf returns the streams of attach. The returned function ends the forwarding of terminal sizes.
func streamsOf(ctx context.Context, attach api.AttachIO) (shim.Streams, func()) {
	s := shim.Streams{}
	if in := attach.Stdin(); in != nil {
		s.Stdin = in
	}
	if out := attach.Stdout(); out != nil {
		s.Stdout = out
	}
	if err := attach.Stderr(); err != nil {
		s.Stderr = err
	}
	if !attach.TTY() || attach.Resize() == nil {
		return s, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	sizes := make(chan shim.Size)
	s.Resize = sizes
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(sizes)
		for {
			select {
			case size, ok := <-attach.Resize():
				if !ok {
					return
				}
				select {
				case sizes <- shim.Size{Width: size.Width, Height: size.Height}:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return s, func() { cancel(); wg.Wait() }
}

// StreamPort connects stream to a port of the pod, or of the machine if the pod is in the host network.
func (r *Runtime) StreamPort(ctx context.Context, sandboxID string, port int32, stream io.ReadWriteCloser) error {
	s, err := r.findSandbox(sandboxID)
	if err != nil {
		return err
	}
	if len(s.addresses) == 0 && r.ownNetwork(s.config) {
		return fmt.Errorf("connect to port %d of the pod: the pod has no network yet, or its network was removed", port) // the port must not be a port of the machine
	}
	dial := s.dialPort
	if r.oci.isGVisor() && len(s.addresses) > 0 {
		dial = func(ctx context.Context, port int32) (net.Conn, error) { return r.dialGuest(ctx, s, port) }
	}
	conn, err := dial(ctx, port)
	if err != nil {
		return fmt.Errorf("connect with port %d of the pod: %w", port, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	go func() {
		// A read of the caller's stream cannot be interrupted: the caller closes the stream.
		_, _ = io.Copy(conn, stream)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	if _, err := io.Copy(stream, conn); err != nil && ctx.Err() == nil {
		return fmt.Errorf("copy from port %d of the pod: %w", port, err)
	}
	return ctx.Err()
}
