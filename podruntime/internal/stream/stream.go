// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// Streamer is a copy of podruntime.Streamer.
type Streamer interface {
	StreamExec(ctx context.Context, containerID string, command []string, attach api.AttachIO) error
	StreamAttach(ctx context.Context, containerID string, attach api.AttachIO) error
	StreamPort(ctx context.Context, sandboxID string, port int32, conn io.ReadWriteCloser) error
}

// Streams opens sessions with a runtime.
type Streams struct {
	runtime cri.RuntimeService
	direct  Streamer // nil: the runtime returns URLs
}

// New returns the streams of a runtime.
func New(runtime cri.RuntimeService) *Streams {
	direct, _ := runtime.(Streamer)
	return &Streams{runtime: runtime, direct: direct}
}

// Exec runs a command in a container and returns when it has ended. An exit code other than 0
// is a k8s.io/utils/exec.ExitError.
func (s *Streams) Exec(ctx context.Context, containerID string, command []string, attach api.AttachIO) error {
	if s.direct != nil {
		return s.direct.StreamExec(ctx, containerID, command, attach)
	}
	answer, err := s.runtime.Exec(ctx, &runtimeapi.ExecRequest{
		ContainerId: containerID, Cmd: command, Tty: attach.TTY(),
		Stdin: attach.Stdin() != nil, Stdout: attach.Stdout() != nil, Stderr: hasStderr(attach),
	})
	if err != nil {
		return fmt.Errorf("ask the runtime for an exec session: %w", classifyError(err))
	}
	return remoteCommand(ctx, answer.GetUrl(), attach)
}

// Attach connects to the main process of a container and returns when the process has ended. The pod, not the client, decides whether the container
// has a terminal: with tty, the client's terminal is connected to the terminal of the process.
func (s *Streams) Attach(ctx context.Context, containerID string, tty bool, attach api.AttachIO) error {
	attach = container{AttachIO: attach, tty: tty}
	if s.direct != nil {
		return s.direct.StreamAttach(ctx, containerID, attach)
	}
	answer, err := s.runtime.Attach(ctx, &runtimeapi.AttachRequest{
		ContainerId: containerID, Tty: tty,
		Stdin: attach.Stdin() != nil, Stdout: attach.Stdout() != nil, Stderr: hasStderr(attach),
	})
	if err != nil {
		return fmt.Errorf("ask the runtime for an attach session: %w", classifyError(err))
	}
	return remoteCommand(ctx, answer.GetUrl(), attach)
}

// container is a session of a client with a process in a container, with or without a terminal.
type container struct {
	api.AttachIO
	tty bool
}

func (c container) TTY() bool { return c.tty }

func (c container) Stderr() io.WriteCloser {
	if c.tty {
		return nil
	}
	return c.AttachIO.Stderr()
}

func (c container) Resize() <-chan api.TermSize {
	if !c.tty {
		return nil
	}
	return c.AttachIO.Resize()
}

func hasStderr(attach api.AttachIO) bool { return attach.Stderr() != nil && !attach.TTY() }

// classifyError gives the error of a runtime its kind.
func classifyError(err error) error {
	switch status.Code(err) {
	case codes.NotFound:
		return errdefs.AsNotFound(err)
	case codes.InvalidArgument:
		return errdefs.AsInvalidInput(err)
	default:
		return err
	}
}

// Target is the target pod of forwarded connections.
type Target struct {
	SandboxID string
	// HostNetwork means that the pod has the network of the machine.
	HostNetwork bool
	// IP is the address of the pod.
	IP string
}

// PortForward connects conn with a TCP port of a pod, and returns when the pod has closed the connection. If the runtime does not support
// port-forward, PortForward dials the port at the address of the pod, or at the loopback address for a pod on the network of the machine.
func (s *Streams) PortForward(ctx context.Context, pod Target, port int32, conn io.ReadWriteCloser) error {
	if s.direct != nil {
		return s.direct.StreamPort(ctx, pod.SandboxID, port, conn)
	}
	answer, err := s.runtime.PortForward(ctx, &runtimeapi.PortForwardRequest{PodSandboxId: pod.SandboxID, Port: []int32{port}})
	switch {
	case status.Code(err) == codes.Unimplemented:
		return dialPort(ctx, pod, port, conn)
	case err != nil:
		return fmt.Errorf("ask the runtime to forward port %d: %w", port, classifyError(err))
	}
	return forwardPort(ctx, answer.GetUrl(), port, conn)
}

func dialPort(ctx context.Context, pod Target, port int32, conn io.ReadWriteCloser) error {
	host := pod.IP
	if pod.HostNetwork {
		host = "localhost"
	}
	if host == "" {
		return errdefs.InvalidInputf("port %d cannot be forwarded: the pod has no address yet", port)
	}
	remote, err := (&net.Dialer{Timeout: handshakeTimeout}).DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("forward port %d: %w", port, err)
	}
	defer remote.Close()
	stop := context.AfterFunc(ctx, func() { _ = remote.Close() })
	defer stop()
	return joinStreams(ctx, conn, remote, func() { _ = remote.(*net.TCPConn).CloseWrite() })
}
