// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package shim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Without Linux there are no namespaces: containers are processes in their own sessions.

// Program returns the reason why shims run the daemon's own binary: the separate program exists only on Linux.
func Program() error { return errors.ErrUnsupported }

func program() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0], err
	}
	return path, Program()
}

func holdMain(string, []string) int { return 1 } // never called on these systems

func openLast(_, path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
}

// Self returns this process.
func Self() Process { return ProcessOf(os.Getpid()) }

// ProcessOf returns the process that currently has the PID.
func ProcessOf(pid int) Process { return Process{PID: pid} }

// Alive reports whether a process with the PID exists.
func (p Process) Alive() bool { return p.PID != 0 && syscall.Kill(p.PID, 0) == nil }

// KillProcess kills a process.
func KillProcess(p Process) error {
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill process %d: %w", p.PID, err)
	}
	return nil
}

// Descendants returns nil: the descendants are not known on this operating system.
func Descendants(int) []int { return nil }

func becomeReaper() {}

// killDescendants kills the sessions of all children.
func killDescendants(c *children) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for pid := range c.waiting {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

// killMembers does nothing: there are no cgroups on this operating system.
func killMembers(dir string) error {
	_, err := listMembers(dir)
	return err
}

func waitGone(ctx context.Context, p Process) error {
	for p.Alive() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

func socketPath(dir string) (string, func(), error) {
	return filepath.Join(dir, socketFile), func() {}, nil
}

func detachedAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func setSize(*os.File, Size) {}

// hungUp returns false: these systems do not report a closed connection before its data is read.
func hungUp(net.Conn) bool { return false }

func (s *supervisor) launchMain(_ *streams, child *childIO) (<-chan syscall.WaitStatus, int, error) {
	return s.forkProcess(child, s.spec.Argv, s.spec.TTY)
}

func (s *supervisor) enterContainer(req request, _ *streams, child *childIO) (<-chan syscall.WaitStatus, int, error) {
	return s.forkProcess(child, req.Argv, req.TTY)
}

func (s *supervisor) forkProcess(child *childIO, argv []string, tty bool) (<-chan syscall.WaitStatus, int, error) {
	if tty {
		return nil, 0, errors.New("a terminal is not supported on this operating system")
	}
	path := argv[0]
	if !strings.Contains(path, "/") {
		var err error
		if path, err = exec.LookPath(path); err != nil {
			return nil, 0, err
		}
	}
	return s.children.start(func() (int, error) {
		return syscall.ForkExec(path, argv, &syscall.ProcAttr{
			Dir: s.spec.Cwd, Env: s.spec.Env, Files: child.fileDescriptors(), Sys: &syscall.SysProcAttr{Setsid: true},
		})
	})
}

func (s *supervisor) probeRuntime(*os.File) error {
	return errors.New("not supported on this operating system")
}

func (s *supervisor) discardContainer() {}

// UnmountRoot does nothing on this operating system.
func UnmountRoot(string) error { return nil }

// commands is empty: there are no sandboxes on this operating system.
type commands struct{}

func (commands) dropPID(int) {}

func (s *supervisor) isSandboxed() bool { return false }

func (s *supervisor) fateOfSandbox() (reason, message string) { return "", "" }

func (s *supervisor) killSandbox() {}

func (s *supervisor) signalResize() {}

func (s *supervisor) signalMain(sig syscall.Signal) error {
	return s.children.signalChild(s.state.Init.PID, false, sig)
}

// killCommand kills a command and its session.
func (s *supervisor) killCommand(pid int) {
	_ = s.children.signalChild(pid, true, syscall.SIGKILL) // an error means that the process has ended
}
