// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Streams are the caller's ends of a session. Each may be nil.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Resize is closed after the last size.
	Resize <-chan Size
}

// ErrNotStarted is in the error chain of a command that could not start.
var ErrNotStarted = errors.New("the command was not started")

// Command is a command to run in a container.
type Command struct {
	Argv []string
	TTY  bool
}

// leaveLimit limits how long Exec waits for the end of the command after ctx has ended. A probe must not hang
// because of a command that the kernel cannot kill, or a sandbox that does not answer.
const leaveLimit = 30 * time.Second

// Exec runs a command in the container in dir and returns its exit code. When ctx ends, or an output cannot be
// written, the command is killed with its remaining descendants. Exec returns when the command has ended, or
// leaveLimit after the attempt to kill it.
func Exec(ctx context.Context, dir string, c Command, s Streams) (int, error) {
	return runSession(ctx, dir, request{Op: opExec, Argv: c.Argv, TTY: c.TTY, Kill: true, Stdin: s.Stdin != nil}, s)
}

// Attach connects s to the streams of the main process of the container in dir until the process ends.
func Attach(ctx context.Context, dir string, s Streams) error {
	_, err := runSession(ctx, dir, request{Op: opAttach, Stdin: s.Stdin != nil}, s)
	return err
}

func runSession(ctx context.Context, dir string, req request, s Streams) (int, error) {
	c, err := dialShim(ctx, dir, req)
	if err != nil {
		return 0, err
	}
	return c.copyStreams(ctx, req, s)
}

// copyStreams copies streams until the request is answered, and closes the connection.
func (c *conn) copyStreams(ctx context.Context, req request, s Streams) (int, error) {
	defer c.Close()
	leave := func() { c.Close() }
	var stdout, stderr *output
	if req.Kill {
		leave = func() {
			c.hangUp()
			time.AfterFunc(leaveLimit, func() { c.Close() })
		}
		stdout, stderr = &output{ctx: ctx, to: s.Stdout, failed: leave}, &output{ctx: ctx, to: s.Stderr, failed: leave}
		s.Stdout, s.Stderr = stdout, stderr
	}
	defer context.AfterFunc(ctx, leave)()
	ended := make(chan struct{})
	defer close(ended)
	if s.Stdin != nil {
		// A read of the caller's reader cannot be interrupted: the goroutine ends after the next byte or EOF.
		go c.copyStdin(s.Stdin)
	}
	if s.Resize != nil {
		go c.copySizes(s.Resize, ended)
	}
	d, err := c.copyAnswer(s.Stdout, s.Stderr)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		return 0, err
	case req.Kill && cmp.Or(stdout.err, stderr.err) != nil:
		return 0, fmt.Errorf("copy output: %w", cmp.Or(stdout.err, stderr.err))
	case d.NotStarted:
		return d.ExitCode, fmt.Errorf("%w: %s", ErrNotStarted, d.Error)
	case d.Error != "":
		return 0, errors.New(d.Error)
	}
	return d.ExitCode, nil
}

// hangUp closes the caller's direction of the connection. The exit code of the command can still be read.
func (c *conn) hangUp() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // an error means that the supervisor closed first
	}
}

// output writes until the first error. It discards later output without an error, because the exit code follows
// the output.
type output struct {
	ctx    context.Context
	to     io.Writer
	failed func()
	err    error
}

func (o *output) Write(p []byte) (int, error) {
	if o.to == nil || o.err != nil || o.ctx.Err() != nil {
		return len(p), nil
	}
	if _, o.err = o.to.Write(p); o.err != nil {
		o.failed()
	}
	return len(p), nil
}

func (c *conn) copyStdin(r io.Reader) {
	if _, err := io.Copy(frameWriter{&c.frames, frameStdin}, r); err == nil {
		_ = c.write(frameEOF, nil)
	}
}

func (c *conn) copySizes(sizes <-chan Size, ended <-chan struct{}) {
	for {
		select {
		case size, ok := <-sizes:
			if !ok {
				return
			}
			_ = c.writeJSON(frameResize, size)
		case <-ended:
			return
		}
	}
}

func decodeSize(payload []byte) (s Size, err error) {
	err = json.Unmarshal(payload, &s)
	return s, err
}
