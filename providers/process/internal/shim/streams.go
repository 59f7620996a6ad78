// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"errors"
	"fmt"
	"io"

	"encoding/json"
)

// Streams are the ends of a session that the caller has. Each may be nil.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Resize is closed when no more sizes come.
	Resize <-chan Size
}

// ErrNotStarted is in the chain of the error of a command that could not be run.
var ErrNotStarted = errors.New("the command was not started")

// Command is what is run in a container.
type Command struct {
	Argv []string
	TTY  bool
	// Kill ends the command when the caller's context does; else it only loses its streams.
	Kill bool
}

// Exec runs a command in the container in dir and returns its exit code.
func Exec(ctx context.Context, dir string, c Command, s Streams) (int, error) {
	return session(ctx, dir, request{Op: opExec, Argv: c.Argv, TTY: c.TTY, Kill: c.Kill, Stdin: s.Stdin != nil}, s)
}

// Attach joins the streams of the main process of the container in dir until that ends.
func Attach(ctx context.Context, dir string, s Streams) error {
	_, err := session(ctx, dir, request{Op: opAttach, Stdin: s.Stdin != nil}, s)
	return err
}

func session(ctx context.Context, dir string, req request, s Streams) (int, error) {
	c, err := dial(ctx, dir, req)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	ended := make(chan struct{})
	defer close(ended)
	if s.Stdin != nil {
		// Nothing interrupts a read of somebody else's reader: the goroutine ends with its next byte or its end.
		go c.copyStdin(s.Stdin)
	}
	if s.Resize != nil {
		go c.copySizes(s.Resize, ended)
	}
	d, err := c.answer(s.Stdout, s.Stderr)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		return 0, err
	case d.NotStarted:
		return d.ExitCode, fmt.Errorf("%w: %s", ErrNotStarted, d.Error)
	case d.Error != "":
		return 0, errors.New(d.Error)
	}
	return d.ExitCode, nil
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
