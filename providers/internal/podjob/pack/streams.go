// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/ssh"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/sshexec"
)

// Streams runs requests in the pod of an instance. Its methods implement exec, attach and port-forward of a
// driver.
type Streams[T any] func(ctx context.Context, of T, req podjob.Request, e podjob.Ends) error

// Exec implements service.Executor.
func (s Streams[T]) Exec(ctx context.Context, in service.Target[T], command []string, attach api.AttachIO) error {
	if attach.TTY() {
		return errdefs.InvalidInput("a command in a job has no terminal: leave -t away")
	}
	return s(ctx, in.Instance, podjob.Request{
		Op: podjob.OpExec, Container: in.Container, Command: command, Stdin: attach.Stdin() != nil, Stdout: attach.Stdout() != nil, Stderr: attach.Stderr() != nil,
	}, ends(attach))
}

// Attach implements service.Attacher: it shows the output of a container.
func (s Streams[T]) Attach(ctx context.Context, to service.Target[T], attach api.AttachIO) error {
	return s(ctx, to.Instance, podjob.Request{
		Op: podjob.OpAttach, Container: to.Container, TTY: attach.TTY(), Stdout: attach.Stdout() != nil, Stderr: attach.Stderr() != nil,
	}, ends(attach))
}

// Forward implements service.Forwarder: it connects with a port of the machine of the pod.
func (s Streams[T]) Forward(ctx context.Context, to service.Target[T], port int32, stream io.ReadWriteCloser) error {
	return s(ctx, to.Instance, podjob.Request{Op: podjob.OpPort, Port: port, Stdin: true, Stdout: true}, podjob.Ends{In: stream, Out: stream})
}

// OverSSH runs a request in a pod on a machine, over client. program is the path of the pod's program, which accepts streams at the socket. OverSSH
// sends the request to the standard input of the program. OverSSH closes client.
func OverSSH(ctx context.Context, client *ssh.Client, program, socket string, req podjob.Request, e podjob.Ends) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer client.Close()
	defer context.AfterFunc(ctx, func() { client.Close() })()
	session, err := client.NewSession()
	if err != nil {
		return fmt.Errorf("open a session: %w", err)
	}
	var complaint bytes.Buffer
	session.Stderr = &complaint
	in, err := session.StdinPipe()
	if err != nil {
		return err
	}
	out, err := session.StdoutPipe()
	if err != nil {
		return err
	}
	if err := session.Start(sshexec.Quote([]string{"sudo", "-n", program, enter.Marker, enter.ModeStream, socket})); err != nil {
		return fmt.Errorf("begin a session: %w", err)
	}
	err = podjob.Stream(ctx, in, out, req, e)
	if errors.Is(err, podjob.ErrNoResult) && ctx.Err() == nil {
		return fmt.Errorf("the session ended early: %w: %.400s", session.Wait(), bytes.TrimSpace(complaint.Bytes()))
	}
	return err
}

func ends(attach api.AttachIO) podjob.Ends {
	return podjob.Ends{In: attach.Stdin(), Out: attach.Stdout(), Err: attach.Stderr(), Resize: attach.Resize()}
}
