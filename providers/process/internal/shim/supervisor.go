// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shim

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

func init() {
	if len(os.Args) == 2 && os.Args[0] == Argv0 {
		os.Exit(shimMain(os.Args[1]))
	}
}

// shimMain is all that a shim does. Its working directory is that of the container.
func shimMain(mode string) int {
	ready := os.NewFile(3, "ready")
	syscall.CloseOnExec(3)
	if mode == "first" {
		first(ready)
		return 1
	}
	err := supervise(mode == "probe", ready)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	// Nobody reads this once the container runs.
	_, _ = ready.WriteString(err.Error())
	return 1
}

// supervisor keeps one container.
type supervisor struct {
	spec     Spec
	log      *logFile
	children *children
	out      *broadcast
	stdin    *inlet
	main     streams
	// owned by run until ended is closed
	state State
	ended chan struct{}
}

// supervise starts the container and returns when it has ended and nothing of it is left.
func supervise(probe bool, ready *os.File) error {
	s := &supervisor{children: newChildren(), out: newBroadcast(), ended: make(chan struct{})}
	if err := ReadJSON(specFile, &s.spec); err != nil {
		return err
	}
	defer s.children.stop()
	// A signal to the group of a terminal or of a service manager is not for the container; ignoring it
	// would be inherited.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	becomeReaper()
	if probe {
		return s.probe(ready)
	}
	var err error
	if s.log, err = openLog(s.spec.LogPath); err != nil {
		return err
	}
	_ = os.Remove(socketFile)
	listener, err := net.Listen("unix", socketFile) //nolint:noctx // it has no name to look up
	if err != nil {
		return fmt.Errorf("listen for the daemon: %w", err)
	}
	status, err := s.start()
	if err != nil {
		s.failed(err)
		return err
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.serve(listener)
	}()
	if _, err := ready.WriteString("ok"); err != nil {
		// The daemon was killed. It will find the container.
		fmt.Fprintln(os.Stderr, "report the start:", err)
	}
	ready.Close()
	err = s.finish(<-status, listener)
	// Those who are attached, or run a command, get the last word before this process ends.
	select {
	case <-served:
	case <-time.After(lastWords):
	}
	return err
}

// start starts the main process, and says so in the file of states.
func (s *supervisor) start() (<-chan syscall.WaitStatus, error) {
	// Before there is a process: a daemon that finds no state may start the container again.
	s.state.Shim = Self()
	io, child, err := openStdio(s.spec.TTY, s.spec.Stdin)
	if err != nil {
		return nil, err
	}
	status, pid, err := s.launch(&io, child)
	child.close()
	if err != nil {
		io.close()
		return nil, err
	}
	s.main, s.stdin = io, &inlet{w: io.stdin}
	s.state.Init, s.state.StartedAt = ProcessOf(pid), time.Now()
	if err := WriteJSON(stateFile, s.state); err != nil {
		s.killAll()
		return nil, err
	}
	io.copy(s.output)
	return status, nil
}

// output gives what the container wrote to its log and to everybody who is attached.
func (s *supervisor) output(stream string, p []byte) {
	s.log.write(stream, p, time.Now())
	k := frameStdout
	if stream == "stderr" {
		k = frameStderr
	}
	s.out.send(k, p)
}

// failed records that there never was a process.
func (s *supervisor) failed(err error) {
	now := time.Now()
	s.state.FinishedAt, s.state.ExitCode, s.state.Reason, s.state.Message = now, 128, "StartError", err.Error()
	s.state.StartedAt = time.Unix(0, 0)
	if err := WriteJSON(stateFile, s.state); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// finish ends what the main process left, and then says how it ended.
func (s *supervisor) finish(status syscall.WaitStatus, listener net.Listener) error {
	finished := time.Now()
	s.killAll()
	s.main.drain()
	for _, stream := range []string{"stdout", "stderr"} {
		s.log.end(stream, time.Now())
	}
	s.state.FinishedAt, s.state.ExitCode = finished, exitCode(status)
	if s.spec.Cgroup.OOMKilled() && status.Signaled() && status.Signal() == syscall.SIGKILL {
		s.state.Reason = "OOMKilled"
	}
	err := WriteJSON(stateFile, s.state)
	close(s.ended)
	s.out.end(done{ExitCode: s.state.ExitCode})
	return errors.Join(err, listener.Close(), s.spec.Cgroup.Remove())
}

// killAll kills every process of the container and returns when they have gone.
func (s *supervisor) killAll() {
	if s.state.Init.PID != 0 {
		_ = syscall.Kill(s.state.Init.PID, syscall.SIGKILL)
	}
	killDescendants(s.children)
	s.spec.Cgroup.Kill()
}

func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// children waits for every process that becomes a child of this one.
type children struct {
	signals chan os.Signal
	// guarded by mu
	mu      sync.Mutex
	waiting map[int]chan syscall.WaitStatus
}

func newChildren() *children {
	c := &children{signals: make(chan os.Signal, 1), waiting: map[int]chan syscall.WaitStatus{}}
	signal.Notify(c.signals, syscall.SIGCHLD)
	go func() {
		for range c.signals {
			c.reap()
		}
	}()
	return c
}

func (c *children) stop() { signal.Stop(c.signals) }

// start calls fork, and returns where the status of the process will come.
func (c *children) start(fork func() (int, error)) (<-chan syscall.WaitStatus, int, error) {
	// The lock is held so that the process cannot be reaped before it is known.
	c.mu.Lock()
	defer c.mu.Unlock()
	pid, err := fork()
	if err != nil {
		return nil, 0, err
	}
	status := make(chan syscall.WaitStatus, 1)
	c.waiting[pid] = status
	return status, pid, nil
}

// signal sends a signal to a child, unless it has been waited for.
func (c *children) signal(pid int, group bool, sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.waiting[pid]; !ok {
		return nil
	}
	if group {
		pid = -pid
	}
	return syscall.Kill(pid, sig)
}

// reap takes every child that has ended, and tells whether there are others.
func (c *children) reap() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return false
		case pid == 0:
			return true
		}
		if ch := c.waiting[pid]; ch != nil {
			ch <- status
			delete(c.waiting, pid)
		}
	}
}
