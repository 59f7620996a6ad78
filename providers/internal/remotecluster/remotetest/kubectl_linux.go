// SPDX-License-Identifier: Apache-2.0

package remotetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testlog"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testterminal"
)

// session is a running kubectl.
type session struct {
	*testing.T
	command string
	cmd     *exec.Cmd
	master  *os.File // the user's side of the terminal; nil without one
	out     *testlog.Buffer
	ended   chan error
}

// runKubectl runs kubectl and waits for its end.
func (s *scenario) runKubectl(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	cmd := s.api.KubectlCommand(t, append([]string{"--namespace=" + s.namespace}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.String(), err
}

// mustKubectl runs kubectl and fails the test if kubectl fails.
func (s *scenario) mustKubectl(t *testing.T, args ...string) (out string) {
	t.Helper()
	out, err := s.runKubectl(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// openSession starts kubectl, on a terminal of 30 lines of 100 characters if terminal is set.
func (s *scenario) openSession(t *testing.T, terminal bool, args ...string) *session {
	t.Helper()
	k := &session{T: t, command: strings.Join(args, " "), out: &testlog.Buffer{}, ended: make(chan error, 1)}
	k.cmd = s.api.KubectlCommand(t, append([]string{"--namespace=" + s.namespace}, args...)...)
	k.cmd.Stdout, k.cmd.Stderr = k.out, k.out
	read := make(chan struct{})
	if terminal {
		master, slave, err := testterminal.Open()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = master.Close() })
		k.master = master
		k.resizeTerminal(30, 100)
		k.cmd.Stdin, k.cmd.Stdout, k.cmd.Stderr = slave, slave, slave
		k.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		k.cmd.Env = append(k.cmd.Env, "TERM=dumb")
		defer slave.Close() // kubectl has its own copy
		go func() {
			defer close(read)
			_, _ = io.Copy(k.out, master) // fails when the other side is closed
		}()
	} else {
		close(read)
	}
	if err := k.cmd.Start(); err != nil {
		t.Fatalf("kubectl %s: %v", k.command, err)
	}
	go func() {
		err := k.cmd.Wait()
		<-read
		k.ended <- err
	}()
	t.Cleanup(func() { _ = k.cmd.Process.Kill() }) // an error means that kubectl has ended
	return k
}

// typeText writes text to the terminal.
func (k *session) typeText(text string) {
	k.Helper()
	if _, err := io.WriteString(k.master, text); err != nil {
		k.Fatalf("type into kubectl %s: %v; it wrote %q", k.command, err, k.out)
	}
}

// awaitText waits until kubectl has written the text.
func (k *session) awaitText(text string) {
	k.Helper()
	Until(k.T, fmt.Sprintf("kubectl %s has written %q", k.command, text), func() (bool, string) {
		return k.out.Has(text), fmt.Sprintf("%q", k.out)
	})
}

// awaitExit waits for the end of kubectl and checks its exit code.
func (k *session) awaitExit(code int) {
	k.Helper()
	Until(k.T, fmt.Sprintf("kubectl %s ends with %d", k.command, code), func() (bool, string) {
		select {
		case err := <-k.ended:
			got := 0
			var exited *exec.ExitError
			if errors.As(err, &exited) {
				got, err = exited.ExitCode(), nil
			}
			if err != nil || got != code {
				k.Fatalf("kubectl %s ended with %d (%v), want %d; it wrote %q", k.command, got, err, code, k.out)
			}
			return true, ""
		default:
			return false, fmt.Sprintf("%q", k.out)
		}
	})
}

// resizeTerminal changes the size of the terminal. The kernel informs kubectl.
func (k *session) resizeTerminal(lines, columns uint16) {
	k.Helper()
	if err := unix.IoctlSetWinsize(int(k.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: lines, Col: columns}); err != nil {
		k.Fatalf("resize the terminal: %v", err)
	}
}
