// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podjob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	utilexec "k8s.io/utils/exec"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// maxOutput is the largest number of bytes of each stream in ExecSync.
const maxOutput = 1 << 20

// beginCommand begins a command in a running container.
func (r *runtime) beginCommand(ctx context.Context, id string, argv []string, stdin, stdout, stderr *os.File) (*os.Process, error) {
	c, err := r.container(id)
	if err != nil {
		return nil, err
	}
	if len(argv) == 0 {
		return nil, status.Error(codes.InvalidArgument, "the command is empty")
	}
	c.mu.Lock()
	pid := c.pid
	c.mu.Unlock()
	if pid == 0 || c.hasEnded() {
		return nil, status.Errorf(codes.FailedPrecondition, "container %s does not run", id)
	}
	cmd, err := enterNamespaces(pid)
	if err != nil {
		return nil, err
	}
	defer cmd.ExtraFiles[0].Close()
	if stdin != nil {
		cmd.Stdin = stdin
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	e := c.spec
	e.Argv, e.Inside, e.Mounts = argv, true, nil
	group, err := startIn(e.Cgroup, cmd)
	if err != nil {
		return nil, err
	}
	defer group.Close()
	return beginProcess(ctx, cmd, e)
}

// awaitCommand waits for a command. If ctx ends earlier, awaitCommand kills the command and the processes in its session.
func awaitCommand(ctx context.Context, p *os.Process) (int, error) {
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) })
	state, err := p.Wait()
	switch {
	case !stop():
		return 0, ctx.Err() // the exit code would only show the kill
	case err != nil:
		return 0, fmt.Errorf("how the command ended is not known: %w", err)
	}
	return int(exitCode(state)), nil
}

// ExecSync runs a command and returns its output. The command is killed after timeout; 0 is no timeout.
func (r *runtime) ExecSync(ctx context.Context, id string, argv []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		bounded, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	var out, errs limited
	code, err := r.runCommand(bounded, id, argv, nil, &out, &errs)
	switch {
	case err != nil && bounded.Err() != nil && ctx.Err() == nil:
		err = status.Errorf(codes.DeadlineExceeded, "command %q timed out after %s", argv, timeout)
	case err == nil && code != 0:
		err = utilexec.CodeExitError{Err: fmt.Errorf("command %q exited with %d", argv, code), Code: code}
	}
	return out.Bytes(), errs.Bytes(), err
}

// limited keeps the first bytes, and discards the rest.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxOutput - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// runCommand runs a command with the given streams. A nil stream is unused.
func (r *runtime) runCommand(ctx context.Context, id string, argv []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	var copied sync.WaitGroup
	var ours []*os.File
	pipe := func(to io.Writer) (*os.File, error) {
		if to == nil {
			to = io.Discard
		}
		in, out, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		ours = append(ours, in)
		copied.Go(func() { passOutput(to, in) })
		return out, nil
	}
	outW, err := pipe(stdout)
	if err != nil {
		return 0, err
	}
	errW, err := pipe(stderr)
	if err != nil {
		return 0, errors.Join(err, outW.Close())
	}
	var inR *os.File
	if stdin != nil {
		var inW *os.File
		if inR, inW, err = os.Pipe(); err != nil {
			return 0, err
		}
		go func() { // ends with the session, which closes the reader or the command's input
			_, _ = io.Copy(inW, stdin)
			_ = inW.Close()
		}()
	}
	p, err := r.beginCommand(ctx, id, argv, inR, outW, errW)
	_, _, _ = outW.Close(), errW.Close(), inR.Close()
	code := 0
	if err == nil {
		code, err = awaitCommand(ctx, p)
	}
	for _, f := range ours {
		_ = f.SetReadDeadline(time.Now().Add(lateOutput)) // a process that the command started may still hold the output
	}
	stop := context.AfterFunc(ctx, func() {
		for _, f := range ours {
			_ = f.Close()
		}
	})
	copied.Wait()
	if stop() {
		for _, f := range ours {
			_ = f.Close()
		}
	}
	return code, err
}

// lateOutput is the time to wait for output of an ended command.
const lateOutput = 2 * time.Second

// passOutput copies the data of a pipe, however slow the reader is. After the deadline of the pipe, it copies only the data that is already in the
// pipe.
func passOutput(to io.Writer, from *os.File) {
	if _, err := io.Copy(to, from); !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	conn, err := from.SyscallConn()
	if err != nil {
		return
	}
	left := 0
	if conn.Control(func(fd uintptr) { left, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }) != nil || err != nil || from.SetReadDeadline(time.Time{}) != nil {
		return
	}
	_, _ = io.CopyN(to, from, int64(left))
}

// StreamExec runs a command between the streams of attach. It has no terminal, because the provider refuses terminals.
func (r *runtime) StreamExec(ctx context.Context, id string, argv []string, attach api.AttachIO) error {
	code, err := r.runCommand(ctx, id, argv, attach.Stdin(), attach.Stdout(), attach.Stderr())
	if err == nil && code != 0 {
		err = utilexec.CodeExitError{Err: fmt.Errorf("command %q exited with %d", argv, code), Code: code}
	}
	return err
}

// StreamPort connects conn to a port of the machine. Pods have the network of the machine.
func (r *runtime) StreamPort(ctx context.Context, _ string, port int32, conn io.ReadWriteCloser) error {
	var d net.Dialer
	to, err := d.DialContext(ctx, "tcp", net.JoinHostPort("localhost", strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("connect with port %d of the job's node: %w", port, err)
	}
	defer to.Close()
	defer context.AfterFunc(ctx, func() { to.Close() })()
	go func() {
		_, _ = io.Copy(to, conn)
		if half, ok := to.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
	}()
	if _, err := io.Copy(conn, to); err != nil && ctx.Err() == nil {
		return fmt.Errorf("copy from port %d: %w", port, err)
	}
	return ctx.Err()
}
