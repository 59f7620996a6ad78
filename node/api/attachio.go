// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// maxCommandBytes bounds the command of an exec, all arguments together.
const maxCommandBytes = 128 << 10

// AttachIO holds the streams of an exec or attach session. A stream that the client did not request is nil.
// Streams end when the client goes away.
type AttachIO interface {
	// Stdin returns the input of the client. It reads io.EOF once the client has closed its end; some protocols
	// cannot report this before the session ends.
	Stdin() io.Reader
	// Stdout returns the writer for the standard output.
	Stdout() io.WriteCloser
	// Stderr returns the writer for the standard error. It is nil for a session with a terminal, because a
	// terminal has only one output.
	Stderr() io.WriteCloser
	// TTY reports whether the session has a terminal.
	TTY() bool
	// Resize returns the sizes of the terminal; it keeps only the latest unread size. It is nil without a
	// terminal, and closed when the session ends.
	Resize() <-chan TermSize
}

// TermSize is the size of a terminal, in characters.
type TermSize struct {
	Width  uint16
	Height uint16
}

type attachIO struct {
	stdin  io.Reader
	stdout io.WriteCloser
	stderr io.WriteCloser
	tty    bool
	resize <-chan TermSize
}

func (a *attachIO) Stdin() io.Reader        { return a.stdin }
func (a *attachIO) Stdout() io.WriteCloser  { return a.stdout }
func (a *attachIO) Stderr() io.WriteCloser  { return a.stderr }
func (a *attachIO) TTY() bool               { return a.tty }
func (a *attachIO) Resize() <-chan TermSize { return a.resize }

// makeAttachIO returns the requested streams. Over WebSocket, the library also returns streams that were not requested.
func makeAttachIO(opts remotecommand.Options, in io.Reader, out, err io.WriteCloser, resize <-chan TermSize) AttachIO {
	a := &attachIO{tty: opts.TTY}
	if opts.Stdin {
		a.stdin = pieceReader{in}
	}
	if opts.Stdout {
		a.stdout = pieceWriter{out}
	}
	if opts.Stderr {
		a.stderr = pieceWriter{err}
	}
	if opts.TTY {
		a.resize = resize
	}
	return a
}

// requireStreams checks that the client created each stream that it requested: over SPDY, the library only
// counts streams.
func requireStreams(opts remotecommand.Options, in io.Reader, out, err io.WriteCloser) error {
	for _, stream := range []struct {
		name          string
		wanted, there bool
	}{
		{"stdin", opts.Stdin, in != nil},
		{"stdout", opts.Stdout, out != nil},
		{"stderr", opts.Stderr, err != nil},
	} {
		if stream.wanted && !stream.there {
			return errdefs.InvalidInputf("the client asked for %s and created no stream for it", stream.name)
		}
	}
	return nil
}

// forwardResize passes terminal sizes on until in is closed or ctx ends, and then closes out. It never waits for
// the reader of out, which must have room for one size. Otherwise a provider that reads no sizes would block the
// other streams of the connection.
func forwardResize(ctx context.Context, in <-chan remotecommand.TerminalSize, out chan TermSize) {
	defer close(out)
	for {
		select {
		case <-ctx.Done():
			return
		case size, ok := <-in:
			if !ok {
				return
			}
			select {
			case <-out:
			default:
			}
			out <- TermSize{Width: size.Width, Height: size.Height}
		}
	}
}

// parseStreamOptions reads the streams that the client requests. As with a kubelet, stderr is dropped when there
// is a terminal.
func parseStreamOptions(query url.Values) (remotecommand.Options, error) {
	isSet := func(name string) bool { return query.Get(name) == "1" || query.Get(name) == "true" }
	opts := remotecommand.Options{
		Stdin:  isSet(remotecommand.ExecStdinParam) || isSet("stdin"),
		Stdout: isSet(remotecommand.ExecStdoutParam) || isSet("stdout"),
		Stderr: isSet(remotecommand.ExecStderrParam) || isSet("stderr"),
		TTY:    isSet(remotecommand.ExecTTYParam),
	}
	if opts.TTY {
		opts.Stderr = false
	}
	if !opts.Stdin && !opts.Stdout && !opts.Stderr {
		return remotecommand.Options{}, errdefs.InvalidInput("at least one of the parameters input, output and error must be 1")
	}
	return opts, nil
}

func parseCommand(req *http.Request) ([]string, error) {
	command := req.URL.Query()["command"]
	if len(command) == 0 {
		return nil, errdefs.InvalidInput("the parameter command is required")
	}
	if n := len(strings.Join(command, " ")); n > maxCommandBytes {
		return nil, errdefs.InvalidInputf("the command has %d bytes, at most %d are allowed", n, maxCommandBytes)
	}
	return command, nil
}
