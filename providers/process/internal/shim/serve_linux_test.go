// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// askedConn is a connection that reports each check whether the other side has closed it.
type askedConn struct {
	*net.UnixConn
	asked chan struct{}
}

func (c askedConn) SyscallConn() (syscall.RawConn, error) {
	select {
	case c.asked <- struct{}{}:
	default:
	}
	return c.UnixConn.SyscallConn()
}

// fullTerminal returns a terminal with a full input, whose command has read nothing, and the connection of the
// typing caller.
func fullTerminal(t *testing.T) (command *os.File, typed int, caller *net.UnixConn, asked, ended <-chan struct{}) {
	t.Helper()
	command, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Close()
		input.Close()
	})
	raw, err := input.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var full error
	err = raw.Control(func(fd uintptr) {
		for full == nil {
			var n int
			n, full = syscall.Write(int(fd), make([]byte, 4<<10))
			typed += max(n, 0)
		}
	})
	if err != nil || !errors.Is(full, syscall.EAGAIN) {
		t.Fatalf("the pipe takes %d bytes, and then says %v", typed, full)
	}
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialled, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close() })
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
	asking, end := make(chan struct{}, 1), make(chan struct{})
	c := &conn{Conn: askedConn{accepted.(*net.UnixConn), asking}, frames: frames{w: accepted}, r: bufio.NewReader(accepted)}
	go func() {
		defer close(end)
		(&supervisor{}).execInput(c, streams{tty: true, stdin: input})
	}()
	return command, typed, dialled.(*net.UnixConn), asking, end
}

// within waits for an event, and fails the test if it does not come in time.
func within(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		t.Fatalf("it did not come: %s", what)
	}
}

// TestEndOfInputReachesASlowTerminal checks that the end of the input waits behind earlier input until the
// command reads it.
func TestEndOfInputReachesASlowTerminal(t *testing.T) {
	command, typed, caller, asked, ended := fullTerminal(t)
	if err := (&frames{w: caller}).write(frameEOF, nil); err != nil {
		t.Fatal(err)
	}
	within(t, "a look for the caller", asked) // the terminal has not taken the end of the input for a while
	read := make([]byte, typed+1)
	if err := command.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(command, read); err != nil || read[typed] != 4 {
		t.Errorf("the command reads %d behind what was typed, and %v; want the end of its input", read[typed], err)
	}
	caller.Close()
	within(t, "the end of the session", ended)
}

// TestCallerThatLeavesASlowTerminalIsMissed checks that a disconnected caller is detected even if the terminal
// does not accept the end of the input.
func TestCallerThatLeavesASlowTerminalIsMissed(t *testing.T) {
	_, _, caller, asked, ended := fullTerminal(t)
	if err := (&frames{w: caller}).write(frameEOF, nil); err != nil {
		t.Fatal(err)
	}
	within(t, "a look for the caller", asked)
	caller.Close()
	within(t, "the end of the session", ended)
}
