// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oci"
)

// commands maps runsc processes on the machine to the processes in the sandbox that they wait for.
type commands struct {
	// lost is the exit status of the container's command, if it ended before the container.
	lost atomic.Pointer[syscall.WaitStatus]
	// killed is true if the sandbox was killed to end the container.
	killed atomic.Bool
	// guarded by mu
	mu  sync.Mutex
	pid map[int]int
}

func (c *commands) setPID(pid, guest int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pid == nil {
		c.pid = map[int]int{}
	}
	c.pid[pid] = guest
}

func (c *commands) getPID(pid int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pid[pid]
}

// dropPID removes an ended process, because its PID may be reused.
func (c *commands) dropPID(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pid, pid)
}

// executeGuest runs another process in the container. The runtime's command lasts as long as the process, and
// returns its exit code.
func (s *supervisor) executeGuest(req request, out *streams, child *childIO) (<-chan syscall.WaitStatus, int, error) {
	o := s.spec.OCI
	dir, err := os.MkdirTemp(o.Bundle, "c")
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(dir)
	if err := oci.Process(dir, o.Config, req.Argv, req.TTY); err != nil {
		return nil, 0, err
	}
	call := o.Attend(dir, o.ID)
	if req.TTY {
		// Create the terminal here, and not in the runtime: the running command then gets size changes, and
		// forwards them.
		terminal, process, err := openTerminal()
		if err != nil {
			return nil, 0, err
		}
		out.stdin, out.stdout = terminal, terminal
		child.stdin, child.stdout, child.stderr = process, process, process
	}
	child.chownStreams(s.spec.UID, s.spec.GID)
	ended, pid, err := s.forkInSandbox(call, child.fileDescriptors(), req.TTY)
	if err != nil {
		return nil, 0, err
	}
	status, err := s.awaitBegin(call, ended, pid, func() bool {
		guest, err := call.GuestPID()
		if err != nil {
			return false
		}
		s.commands.setPID(pid, guest)
		return true
	}, nil)
	if err != nil {
		return nil, 0, notFound(err)
	}
	return status, pid, nil
}

// awaitBegin waits until the process of a command runs or has run. runs reports whether it runs. hasRun, which
// may be nil, reports whether the process has run, if the command ends before runs returns true.
func (s *supervisor) awaitBegin(call oci.Call, ended <-chan syscall.WaitStatus, pid int, runs func() bool, hasRun func(syscall.WaitStatus) bool) (<-chan syscall.WaitStatus, error) {
	late := time.After(callTimeout)
	const often, seldom = 3 * time.Millisecond, 20 * time.Millisecond // poll less often over time: when many start at once, each is slow
	for pause := often; !runs(); pause = min(pause*3/2, seldom) {
		select {
		case <-time.After(pause):
		case status := <-ended:
			if !runs() && (hasRun == nil || !hasRun(status)) {
				return nil, call.Failed(fmt.Sprintf("it ended with code %d", exitCode(status)))
			}
			again := make(chan syscall.WaitStatus, 1)
			again <- status
			return again, nil
		case <-late:
			_ = s.children.signalChild(pid, true, syscall.SIGKILL) // an error means that the process has ended
			return nil, call.Failed(fmt.Sprintf("it did not start its process within %v and was killed", callTimeout))
		}
	}
	return ended, nil
}

// signalMain sends a signal to the main process. It ignores errors once the container ends: the signal may have
// ended it before the command has returned.
func (s *supervisor) signalMain(sig syscall.Signal) error {
	if !s.isSandboxed() || s.spec.OCI.ID == s.spec.OCI.Sandbox {
		return s.children.signalChild(s.state.Init.PID, false, sig)
	}
	o := s.spec.OCI
	err := s.callRuntime(func(dir string) oci.Call { return o.Signal(dir, o.ID, int(sig)) })
	if err != nil && s.ending.Load() {
		<-s.ended
		return nil
	}
	return err
}

// signalResize sends SIGWINCH to the main process, because the host kernel signals only processes of the machine.
func (s *supervisor) signalResize() {
	if s.isSandboxed() {
		_ = s.signalMain(syscall.SIGWINCH) // an error means that the process has ended
	}
}
