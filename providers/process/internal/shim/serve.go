// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// readersTimeout limits how long a shim waits for remaining readers after the container has ended.
const readersTimeout = 5 * time.Second

// serveDaemon answers requests until the listener is closed. It returns when all callers have their answers.
func (s *supervisor) serveDaemon(listener net.Listener) {
	var answers sync.WaitGroup
	defer answers.Wait()
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		answers.Go(func() { s.answerRequest(&conn{Conn: c, frames: frames{w: c}, r: bufio.NewReader(c)}) })
	}
}

func (s *supervisor) answerRequest(c *conn) {
	defer c.Close()
	k, payload, err := readFrame(c.r)
	if err != nil || k != frameRequest {
		return
	}
	var req request
	if err := json.Unmarshal(payload, &req); err != nil {
		_ = c.writeJSON(frameDone, done{Error: err.Error()})
		return
	}
	var d done
	switch req.Op {
	case opSignal:
		err = s.signalMain(syscall.Signal(req.Signal))
	case opKill:
		s.killNow(req.Sandbox)
	case opReopen:
		err = s.log.reopenFile()
	case opWait:
		<-s.ended
	case opAttach:
		s.attachClient(c, req)
		return
	case opExec:
		d = s.execCommand(c, req)
	default:
		err = fmt.Errorf("the supervisor of the container knows no %q: it is of another version", req.Op)
	}
	if err != nil {
		d.Error = err.Error()
	}
	_ = c.writeJSON(frameDone, d)
}

// attachClient copies the streams until the container ends or the caller closes the connection.
func (s *supervisor) attachClient(c *conn, req request) {
	client := s.out.addClient(func() { c.Close() })
	defer s.out.removeClient(client)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.attachedInput(c, req)
	}()
	for {
		select {
		case q := <-client.queue:
			if q.last != nil {
				_ = c.SetWriteDeadline(time.Now().Add(readersTimeout))
				_ = c.writeJSON(frameDone, q.last)
				return
			}
			if err := c.write(q.k, q.payload); err != nil {
				return
			}
		case <-gone:
			return
		}
	}
}

// attachedInput copies the input of the caller until the caller closes the connection.
func (s *supervisor) attachedInput(c *conn, req request) {
	end := func() {
		if req.Stdin && s.spec.StdinOnce && !s.spec.TTY {
			s.stdin.close()
		}
	}
	defer end()
	for {
		k, payload, err := readFrame(c.r)
		if err != nil {
			return
		}
		switch k {
		case frameStdin:
			if req.Stdin {
				_ = s.stdin.write(payload)
			}
		case frameEOF:
			end()
		case frameResize:
			if s.resizeTerminal(s.main, payload) {
				s.signalResize()
			}
		}
	}
}

func (s *supervisor) resizeTerminal(io streams, payload []byte) bool {
	size, err := decodeSize(payload)
	if err != nil || !io.tty {
		return false
	}
	setSize(io.stdout, size)
	return true
}

// execCommand runs a command next to the main process.
func (s *supervisor) execCommand(c *conn, req request) done {
	io, child, err := openStdio(req.TTY, req.Stdin)
	if err != nil {
		return done{Error: err.Error()}
	}
	status, pid, err := s.enterContainer(req, &io, child)
	child.close()
	if err != nil {
		io.close()
		return done{Error: err.Error(), NotStarted: true, ExitCode: startCode(err)}
	}
	output := func(stream string, p []byte) {
		k := frameStdout
		if stream == "stderr" {
			k = frameStderr
		}
		_, _ = frameWriter{&c.frames, k}.Write(p) // execInput detects a closed connection
	}
	io.copyOutput(output)
	gone, killed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(killed)
		s.execInput(c, io)
		close(gone)
		s.killCommand(pid)
	}()
	code := exitCode(<-status)
	select {
	case <-gone:
		<-killed // processes of the command have ended too
	default:
	}
	s.commands.dropPID(pid)
	drained := make(chan struct{})
	defer close(drained)
	go func() {
		select {
		case <-gone: // the output of background processes of the command is not read
			io.close()
		case <-drained:
		}
	}()
	io.drainOutput()
	return done{ExitCode: code}
}

// execInput copies the input of the caller until the caller closes the connection.
func (s *supervisor) execInput(c *conn, io streams) {
	var once sync.Once
	closeStdin := func() {
		if io.stdin != nil && !io.tty {
			once.Do(func() { io.stdin.Close() })
		}
	}
	defer closeStdin()
	for {
		k, payload, err := readFrame(c.r)
		if err != nil {
			return
		}
		switch k {
		case frameStdin:
			if io.stdin != nil && !c.typeIn(io.stdin, payload) {
				return
			}
		case frameEOF:
			if io.tty && !c.typeIn(io.stdin, []byte{4}) { // Ctrl-D, which ends the input of a terminal
				return
			}
			closeStdin()
		case frameResize:
			s.resizeTerminal(io, payload)
		}
	}
}

// inputBeat is the interval of checks whether the caller is still connected while the command does not read its
// input.
const inputBeat = 200 * time.Millisecond

// typeIn writes to the input of a command, and reports whether the caller is still connected. It has to check,
// because the connection is not read while the write blocks.
func (c *conn) typeIn(stdin *os.File, payload []byte) bool {
	for len(payload) > 0 {
		if stdin.SetWriteDeadline(time.Now().Add(inputBeat)) != nil {
			_, _ = stdin.Write(payload) // the command has ended, or has closed its input
			return true
		}
		n, err := stdin.Write(payload)
		payload = payload[n:]
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if hungUp(c.Conn) {
				return false
			}
		case err != nil:
			return true // the command has ended, or has closed its input
		}
	}
	return true
}

// startCode returns the exit code that a shell uses for a command that it cannot run.
func startCode(err error) int {
	if errors.Is(err, fs.ErrPermission) {
		return 126
	}
	return 127
}
