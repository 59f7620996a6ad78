// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testlog"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testterminal"
)

// user is a user of kubectl who prefers one protocol.
type user struct {
	*world
	protocol string
}

// protocols lists the protocols of kubectl, with the settings that select them.
var protocols = map[string][]string{
	"websocket": {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true", "KUBECTL_PORT_FORWARD_WEBSOCKETS=true"},
	"spdy":      {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false", "KUBECTL_PORT_FORWARD_WEBSOCKETS=false"},
}

// as returns the user in a subtest.
func (u user) as(t *testing.T) user {
	w := *u.world
	w.T = t
	return user{&w, u.protocol}
}

// session is a running kubectl.
type session struct {
	user
	command  string
	cmd      *exec.Cmd
	in       io.WriteCloser
	terminal *os.File        // nil without one
	out      *testlog.Buffer // its output, to a terminal or to its standard output
	errs     *testlog.Buffer
	ended    chan error
}

// open starts kubectl with pipes.
func (u user) open(args ...string) *session {
	u.Helper()
	s := u.session(args)
	in, err := s.cmd.StdinPipe()
	if err != nil {
		u.Fatal(err)
	}
	s.in, s.cmd.Stdout, s.cmd.Stderr = in, s.out, s.errs
	s.start()
	return s
}

// openTerminal starts kubectl in a terminal of 30 lines of 100 characters.
func (u user) openTerminal(args ...string) *session {
	u.Helper()
	s := u.session(args)
	master, slave, err := testterminal.Open()
	if err != nil {
		u.Skipf("this test needs a terminal: %v", err)
	}
	u.Cleanup(func() { _ = master.Close() })
	s.terminal, s.in = master, master
	s.resize(30, 100)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	s.cmd.Env = append(s.cmd.Env, "TERM=dumb")
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(s.out, master) // it ends with an error when the other side is closed
	}()
	s.start()
	_ = slave.Close() // kubectl has its own copy
	ended := s.ended
	s.ended = make(chan error, 1)
	go func() {
		err := <-ended
		<-read
		s.ended <- err
	}()
	return s
}

func (u user) session(args []string) *session {
	u.Helper()
	cmd := u.api.KubectlCommand(u.T, append([]string{"--namespace=" + u.namespace}, args...)...)
	cmd.Env = append(cmd.Env, protocols[u.protocol]...)
	return &session{user: u, command: strings.Join(args, " "), cmd: cmd, out: &testlog.Buffer{}, errs: &testlog.Buffer{}, ended: make(chan error, 1)}
}

func (s *session) start() {
	s.Helper()
	if err := s.cmd.Start(); err != nil {
		s.Fatalf("kubectl %s: %v", s.command, err)
	}
	ended := s.ended
	go func() { ended <- s.cmd.Wait() }()
	s.Cleanup(func() { _ = s.cmd.Process.Kill() }) // an error means that it has ended
}

// say writes to the input of kubectl.
func (s *session) say(text string) {
	s.Helper()
	if _, err := io.WriteString(s.in, text); err != nil {
		s.Fatalf("type into kubectl %s: %v; it wrote %q and %q", s.command, err, s.out, s.errs)
	}
}

// hears waits until the text is in the output of kubectl.
func (s *session) hears(text string) {
	s.Helper()
	s.await(fmt.Sprintf("kubectl %s has written %q", s.command, text), func() (bool, string) {
		out := s.out.String()
		return strings.Contains(out, text), fmt.Sprintf("%q and %q", out, s.errs)
	})
}

// ends waits for the end of kubectl, checks its exit code, and returns its output.
func (s *session) ends(code int) string {
	s.Helper()
	select {
	case err := <-s.ended:
		got := 0
		var exited *exec.ExitError
		if errors.As(err, &exited) {
			got, err = exited.ExitCode(), nil
		}
		if err != nil || got != code {
			s.Errorf("kubectl %s ended with %d (%v), want %d; it wrote %q and %q", s.command, got, err, code, s.out, s.errs)
		}
	case <-time.After(patience):
		s.Fatalf("kubectl %s does not end; it wrote %q and %q", s.command, s.out, s.errs)
	}
	return s.out.String()
}

// interrupt sends SIGINT to kubectl, as Ctrl-C does.
func (s *session) interrupt() {
	s.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		s.Fatalf("interrupt kubectl %s: %v", s.command, err)
	}
}

// resize changes the size of the terminal. The kernel signals kubectl.
func (s *session) resize(lines, columns uint16) {
	s.Helper()
	if err := unix.IoctlSetWinsize(int(s.terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: lines, Col: columns}); err != nil {
		s.Fatalf("resize the terminal: %v", err)
	}
}

// awaitSize asks the shell for the size of its terminal until this is the size of the user's terminal. The size is sent separately from the
// input, so it may arrive later.
func (s *session) awaitSize(size string) {
	s.Helper()
	s.await("the size has arrived", func() (bool, string) {
		s.say("stty size\r")
		got := s.out.String()
		return strings.Contains(got, size+"\r\n"), got
	})
}
