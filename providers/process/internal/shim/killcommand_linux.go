// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oci"
)

// A command may have started processes in sessions of their own. All are stopped before the first is killed: the
// children of an ended process can no longer be attributed to the command. A process that left the command
// before, like a daemon, belongs to the container.

// killCommand kills a command and its descendants, and returns after their end. It skips a command that has
// ended.
func (s *supervisor) killCommand(pid int) {
	if !s.children.hasChild(pid) {
		return
	}
	if guest := s.commands.getPID(pid); s.isSandboxed() && guest != 0 {
		s.killInSandbox(guest)
		return
	}
	_ = s.children.signalChild(pid, false, syscall.SIGSTOP) // an error means that the process has ended
	var processes []Process
	killAllOf(func() []int { return quickDescendants(pid) }, func(below int, sig syscall.Signal) {
		if sig == syscall.SIGSTOP {
			processes = append(processes, ProcessOf(below))
		}
		signalBelow(pid, below, sig)
	})
	_ = s.children.signalChild(pid, true, syscall.SIGKILL)
	_ = s.children.signalChild(pid, false, syscall.SIGKILL) // if the process does not lead its group
	for _, p := range processes {
		_ = waitGone(context.Background(), p) // without a limit, waitGone returns no error
	}
}

// hungUp reports whether the peer has ended a connection, after its data.
func hungUp(c net.Conn) (gone bool) {
	raw, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return true
	}
	err = control.Control(func(fd uintptr) {
		watched := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}} //nolint:gosec // a descriptor fits
		n, err := unix.Poll(watched, 0)
		gone = err == nil && n > 0
	})
	return gone || err != nil
}

// killAllOf stops the processes of a list, parents before children, until the list is complete, and kills them.
// It kills children before their parents: the child of an ended process gets another parent, and the kernel
// continues a group of stopped processes if nobody outside of the group can.
func killAllOf(list func() []int, send func(pid int, sig syscall.Signal)) {
	var stopped []int
	seen := map[int]bool{}
	for more := true; more; {
		more = false
		for _, pid := range list() {
			if !seen[pid] {
				seen[pid], more = true, true
				stopped = append(stopped, pid)
				send(pid, syscall.SIGSTOP)
			}
		}
	}
	for _, pid := range slices.Backward(stopped) {
		send(pid, syscall.SIGKILL)
	}
}

// killInSandbox kills a process of the container and its descendants, by their numbers in the sandbox. An error
// of a call means that the process or the sandbox has ended.
func (s *supervisor) killInSandbox(guest int) {
	send := func(pid int, sig syscall.Signal) {
		_ = s.callRuntime(func(dir string) oci.Call { return s.spec.OCI.SignalProcess(dir, s.spec.OCI.ID, pid, int(sig)) })
	}
	send(guest, syscall.SIGSTOP)
	killAllOf(func() []int { return s.belowInSandbox(guest) }, send)
	send(guest, syscall.SIGKILL)
}

// belowInSandbox returns the descendants of a process of the container, by their numbers in the sandbox.
func (s *supervisor) belowInSandbox(guest int) []int {
	dir, err := os.MkdirTemp(s.spec.OCI.Bundle, "c")
	if err != nil {
		return nil
	}
	defer os.RemoveAll(dir)
	listing, err := os.Create(filepath.Join(dir, "processes"))
	if err != nil {
		return nil
	}
	defer listing.Close()
	child := &childIO{}
	if child.openNull() != nil {
		return nil
	}
	defer child.close()
	if s.runCall(s.spec.OCI.Processes(dir, s.spec.OCI.ID), []uintptr{child.stdin.Fd(), listing.Fd(), child.stderr.Fd()}) != nil {
		return nil
	}
	said, err := os.ReadFile(listing.Name())
	if err != nil {
		return nil
	}
	children := oci.ReadProcesses(said)
	found := children[guest]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}
