// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oomscore"
)

// Start starts the container in dir and returns once its process runs. The caller should wait for the command,
// which otherwise becomes a zombie.
func Start(ctx context.Context, dir string, spec Spec) (*exec.Cmd, error) {
	return runShim(ctx, dir, spec, "run")
}

// Probe checks whether the runtime of spec can create containers, by creating one in dir, with a directory as its
// image.
func Probe(ctx context.Context, dir string, spec Spec) error {
	cmd, err := runShim(ctx, dir, spec, "probe")
	if err != nil {
		return err
	}
	return cmd.Wait()
}

// runShim starts the shim and waits for its message that the container runs.
func runShim(ctx context.Context, dir string, spec Spec, mode string) (*exec.Cmd, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	specR, specW, err := os.Pipe()
	if err != nil {
		w.Close()
		return nil, err
	}
	defer specW.Close()
	log, err := os.OpenFile(filepath.Join(dir, shimLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		w.Close()
		specR.Close()
		return nil, err
	}
	defer log.Close()
	path, _ := program() // the daemon reports the error at its start
	// Do not use CommandContext: the shim outlives the call.
	cmd := &exec.Cmd{
		Path: path, Args: []string{Argv0, mode}, Dir: dir,
		Env:    []string{"GOMAXPROCS=2", "GOGC=25"},
		Stdout: log, Stderr: log, ExtraFiles: []*os.File{w, specR},
		SysProcAttr: detachedAttributes(),
	}
	err = cmd.Start()
	w.Close()
	specR.Close()
	if err != nil {
		return nil, fmt.Errorf("start the supervisor of the container: %w", err)
	}
	oomscore.Restore(cmd.Process.Pid) // before the shim starts any process: the shim waits for the spec
	// Do not write the spec to a file: it contains the environment, and so secrets. A shim that fails to read it
	// reports the error.
	_, _ = specW.Write(data)
	specW.Close()
	stop := context.AfterFunc(ctx, func() { r.Close() })
	defer stop()
	word, err := io.ReadAll(r)
	if err == nil && string(word) == "ok" {
		return cmd, nil
	}
	if ctx.Err() != nil {
		_ = cmd.Process.Kill()
		err = ctx.Err()
	}
	_ = cmd.Wait()
	if err != nil {
		return nil, fmt.Errorf("start the container: %w", err)
	}
	if len(word) == 0 {
		return nil, fmt.Errorf("the supervisor of the container ended: %s", Tail(log.Name()))
	}
	return nil, errors.New(string(word))
}

// Tail returns the end of a log, for an error message.
func Tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data[max(0, len(data)-500):]))
}

// Detached returns attributes that let a process outlive its parent.
func Detached() *syscall.SysProcAttr { return detachedAttributes() }

// conn is a connection to a shim.
type conn struct {
	net.Conn
	frames
	r *bufio.Reader
}

func dialShim(ctx context.Context, dir string, req request) (*conn, error) {
	path, closer, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	defer closer()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("ask the supervisor of the container: %w", err)
	}
	out := &conn{Conn: c, frames: frames{w: c}, r: bufio.NewReaderSize(c, 8<<10)}
	if err := out.writeJSON(frameRequest, req); err != nil {
		c.Close()
		return nil, fmt.Errorf("ask the supervisor of the container: %w", err)
	}
	return out, nil
}

// sendRequest sends a request without streams, and waits for the answer.
func sendRequest(ctx context.Context, dir string, req request) error {
	c, err := dialShim(ctx, dir, req)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	d, err := c.copyAnswer(nil, nil)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && d.Error != "" {
		err = errors.New(d.Error)
	}
	return err
}

// copyAnswer copies output until the last frame, and returns that frame.
func (c *conn) copyAnswer(stdout, stderr io.Writer) (done, error) {
	for {
		k, n, err := readHeader(c.r)
		if err == nil && k == frameDone {
			payload := make([]byte, n)
			if _, err = io.ReadFull(c.r, payload); err == nil {
				var d done
				return d, json.Unmarshal(payload, &d)
			}
		}
		if err != nil {
			return done{}, fmt.Errorf("the supervisor of the container: %w", err)
		}
		to := io.Discard
		switch {
		case k == frameStdout && stdout != nil:
			to = stdout
		case k == frameStderr && stderr != nil:
			to = stderr
		}
		if err := c.copyOut(to, n); err != nil {
			return done{}, fmt.Errorf("copy output: %w", err)
		}
	}
}

// copyOut writes the payload of a frame directly from the buffer of the connection, so a session needs no more
// memory while its caller does not read.
func (c *conn) copyOut(to io.Writer, n int) error {
	for n > 0 {
		piece, err := c.r.Peek(min(n, c.r.Size()))
		if err != nil {
			return err
		}
		if _, err := to.Write(piece); err != nil {
			return err
		}
		if _, err := c.r.Discard(len(piece)); err != nil {
			return err
		}
		n -= len(piece)
	}
	return nil
}

// Signal sends a signal to the main process of the container in dir.
func Signal(ctx context.Context, dir string, s syscall.Signal) error {
	return sendRequest(ctx, dir, request{Op: opSignal, Signal: int(s)})
}

// Kill kills every process of the container in dir.
func Kill(ctx context.Context, dir string) error { return sendRequest(ctx, dir, request{Op: opKill}) }

// KillWithSandbox kills the container with its sandbox. This is cheaper, because the runtime does not have to
// kill processes inside the sandbox.
func KillWithSandbox(ctx context.Context, dir string) error {
	return sendRequest(ctx, dir, request{Op: opKill, Sandbox: true})
}

// Reopen reopens the log of the container, after a rotation.
func Reopen(ctx context.Context, dir string) error {
	return sendRequest(ctx, dir, request{Op: opReopen})
}

// WaitGone waits for the end of the process, or of ctx.
func WaitGone(ctx context.Context, p Process) error { return waitGone(ctx, p) }

// Wait waits until the container has ended and its final state is on disk, or until ctx ends.
func Wait(ctx context.Context, dir string) error {
	for {
		s, err := ReadState(dir)
		if err != nil || s.Ended() || !s.Started() {
			return err
		}
		err = sendRequest(ctx, dir, request{Op: opWait})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			continue
		}
		// The shim is about to end: its state is final once the process has ended.
		if err := waitGone(ctx, s.Shim); err != nil {
			return err
		}
	}
}
