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

// A command may have started processes in their own sessions. All of them are stopped before the first is killed,
// because the children of an ended process can no longer be attributed to the command. A process that has already
// detached from the command, like a daemon, is not killed: it belongs to the container.

// killCommand kills a command and its descendants, and waits for their end. It does nothing if the command has
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
	_ = s.children.signalChild(pid, false, syscall.SIGKILL) // for a process that does not lead its process group
	for _, p := range processes {
		_ = waitGone(context.Background(), p) // without a limit, waitGone returns no error
	}
}

// hungUp reports whether the peer has closed the connection, even if unread data is left.
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

// killAllOf stops the listed processes, parents first, until the list has no new ones, and then kills them,
// children first. Otherwise the child of a killed process would get another parent, and the kernel would continue
// a stopped process group when it becomes orphaned.
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

// killInSandbox kills a process of the container and its descendants, by their PIDs in the sandbox. It ignores
// errors, because they mean that the process or the sandbox has ended.
func (s *supervisor) killInSandbox(guest int) {
	send := func(pid int, sig syscall.Signal) {
		_ = s.callRuntime(func(dir string) oci.Call { return s.spec.OCI.SignalProcess(dir, s.spec.OCI.ID, pid, int(sig)) })
	}
	send(guest, syscall.SIGSTOP)
	killAllOf(func() []int { return s.belowInSandbox(guest) }, send)
	send(guest, syscall.SIGKILL)
}

// belowInSandbox returns the descendants of a process of the container, by their PIDs in the sandbox.
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
