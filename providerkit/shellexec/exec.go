// SPDX-License-Identifier: Apache-2.0

package shellexec

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	utilexec "k8s.io/utils/exec"
)

// Exec is one command in a shell. One goroutine calls Write and the methods that read its results; another
// goroutine calls Send.
type Exec struct {
	o            Options
	mark         string
	ready, begun chan struct{} // closed when the output of the shell shows it

	started bool   // begun is closed
	cooked  bool   // a terminal makes two bytes of each end of a line
	held    []byte // received and not passed on yet
	exit    *int
}

// New returns a command to run.
func New(o Options) *Exec {
	if o.By == Reading && o.TTY {
		o.By = Words
	}
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	return &Exec{o: o, mark: "vk-" + rand.Text(), ready: make(chan struct{}), begun: make(chan struct{})}
}

// Command returns the command for the service. It is not for Typing, because there the service starts its own shell.
func (e *Exec) Command() []string {
	if e.o.By == Reading {
		return []string{"sh", "-c", "m=$1;" + tellReady + read, "sh", e.mark}
	}
	return append([]string{"sh", "-c", "m=$1;shift;" + e.o.body(), "sh", e.mark}, e.o.Command...)
}

// NeedsInput reports whether the service must pass an input on. The input may serve the shell alone.
func (e *Exec) NeedsInput() bool { return e.o.Input || e.o.By != Words }

// Send sends the script, and then the input of the caller until its end, each when the shell is ready. It returns the first error of write
// or of the context. The session may end before the input, so run Send in a goroutine, and end the context with the session.
func (e *Exec) Send(ctx context.Context, in io.Reader, write func([]byte) error) error {
	if e.o.By == Typing {
		opener := "m=" + e.mark + ";o=$(stty -g 2>/dev/null);stty -echo 2>/dev/null;" + tellReady + read + ";exit\n"
		if err := write([]byte(opener)); err != nil {
			return err
		}
	}
	if e.o.By != Words {
		if err := wait(ctx, e.ready); err != nil {
			return err
		}
		if err := write(append(encode(e.o.whole()), lastLine...)); err != nil {
			return err
		}
	}
	if !e.o.Input || in == nil {
		return nil
	}
	if err := wait(ctx, e.begun); err != nil {
		return err
	}
	end := []byte(lastLine)
	if e.o.TTY {
		end = []byte{4}
	}
	buffer := make([]byte, 8<<10)
	for {
		n, err := in.Read(buffer)
		data := buffer[:n]
		if !e.o.TTY {
			data = encode(data)
		}
		if n > 0 {
			if err := write(data); err != nil {
				return err
			}
		}
		if err != nil {
			return write(end)
		}
	}
}

func wait(ctx context.Context, until <-chan struct{}) error {
	select {
	case <-until:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ErrNoTTY is the error of Write if the terminal of the service would echo the command's input.
var ErrNoTTY = errors.New("input without a terminal needs stty in the image: ask for a terminal, or use an image with stty")

// mostHeld bounds the output kept from before the start of the command.
const mostHeld = 64 << 10

// Write receives the output of the session, and passes on the output of the command. It drops output after the end of the command.
func (e *Exec) Write(data []byte) (int, error) {
	if e.exit != nil {
		return len(data), nil
	}
	e.held = append(e.held, data...)
	for {
		at, word, end := e.said()
		if end < 0 { // no whole line of the shell
			if e.started {
				return len(data), e.pass(at)
			}
			e.held = e.held[max(0, len(e.held)-mostHeld):]
			return len(data), nil
		}
		if !e.started {
			e.held = e.held[end:]
			if err := e.begin(word); err != nil {
				return 0, err
			}
			continue
		}
		code, err := strconv.Atoi(word)
		if err != nil { // the command printed text that looks like a mark
			at = end
		} else {
			e.exit = &code
		}
		if err := e.pass(at); err != nil || e.exit != nil {
			e.held = nil
			return len(data), err
		}
	}
}

// begin handles the lines of the shell before the output of the command.
func (e *Exec) begin(word string) error {
	switch word {
	case "ready":
		if !closed(e.ready) {
			close(e.ready)
		}
		return nil
	case "cooked":
		if e.o.Input {
			return ErrNoTTY
		}
		e.cooked = true
	case "begun", "raw":
	default:
		return fmt.Errorf("the shell says %q, which is not understood", word)
	}
	e.started = true
	close(e.begun)
	if e.o.Begun != nil {
		e.o.Begun()
	}
	return nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// said finds a line of the shell. end is the position after the line, or -1 if there is no complete line: the bytes from at on may become a
// line later.
func (e *Exec) said() (at int, word string, end int) {
	mark := []byte("\x1e" + e.mark + " ")
	if at = bytes.Index(e.held, mark); at >= 0 {
		begin := at + len(mark)
		n := bytes.IndexByte(e.held[begin:], '\n')
		if n < 0 {
			return at, "", -1
		}
		return at, strings.TrimSpace(string(e.held[begin : begin+n])), begin + n + 1
	}
	n := min(len(mark)-1, len(e.held))
	for !bytes.HasSuffix(e.held, mark[:n]) {
		n--
	}
	return len(e.held) - n, "", -1
}

// pass passes on the first n bytes.
func (e *Exec) pass(n int) error {
	data := e.held[:n]
	if e.cooked {
		if n == len(e.held) && e.exit == nil && bytes.HasSuffix(data, []byte("\r")) {
			n--
		}
		data = bytes.ReplaceAll(e.held[:n], []byte("\r\n"), []byte("\n"))
	}
	var err error
	if len(data) > 0 {
		_, err = e.o.Stdout.Write(data)
	}
	e.held = bytes.Clone(e.held[n:])
	return err
}

// Begun returns a channel that is closed when the command starts.
func (e *Exec) Begun() <-chan struct{} { return e.begun }

// Ended reports whether the command has ended. err is nil for exit code 0, and otherwise an
// utilexec.CodeExitError.
func (e *Exec) Ended() (ended bool, err error) {
	if e.exit == nil {
		return false, nil
	}
	if *e.exit == 0 {
		return true, nil
	}
	return true, utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", *e.exit), Code: *e.exit}
}

// End sets the exit code, for a service that reports it in some cases.
func (e *Exec) End(code int) { e.exit = &code }

// Flush passes on the buffered output, for a session that ended before the shell reported the end of the command: the output may contain
// the reason.
func (e *Exec) Flush() error {
	if e.exit != nil {
		return nil
	}
	_, err := e.o.Stdout.Write(e.held)
	e.held = nil
	return err
}
