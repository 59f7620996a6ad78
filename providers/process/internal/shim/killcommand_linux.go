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

// A command may have started others, in sessions of their own. All of them are stopped before the first is killed: those below one that
// has ended are no longer known to be of the command. What has left the command before, as a daemon does, belongs to the container.

// killCommand kills a command and what is below it, and returns when they have gone. One that has ended is passed over.
func (s *supervisor) killCommand(pid int) {
	if !s.children.has(pid) {
		return
	}
	if guest := s.commands.get(pid); s.guest() && guest != 0 {
		s.killInSandbox(guest)
		return
	}
	_ = s.children.signal(pid, false, syscall.SIGSTOP) // an error means that it has ended
	var processes []Process
	killAllOf(func() []int { return quickDescendants(pid) }, func(below int, sig syscall.Signal) {
		if sig == syscall.SIGSTOP {
			processes = append(processes, ProcessOf(below))
		}
		signalBelow(pid, below, sig)
	})
	_ = s.children.signal(pid, true, syscall.SIGKILL)
	_ = s.children.signal(pid, false, syscall.SIGKILL) // where it is not the first of its group
	for _, p := range processes {
		_ = waitGone(context.Background(), p) // without a limit it has no error
	}
}

// hungUp tells whether the other side has ended a connection, behind what it sent.
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
		watched := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}} //nolint:gosec // a descriptor is small
		n, err := unix.Poll(watched, 0)
		gone = err == nil && n > 0
	})
	return gone || err != nil
}

// killAllOf stops the processes of a list, which has parents before their children, until it has no others, and kills them. Children are killed
// before their parents: a process whose parent has ended is below another one, and the kernel lets a group of stopped processes go on that
// nobody outside of the group can.
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

// killInSandbox kills a process of the container and what is below it, by their numbers in the sandbox. An error of a call means that the
// process has ended, or that the sandbox has.
func (s *supervisor) killInSandbox(guest int) {
	send := func(pid int, sig syscall.Signal) {
		_ = s.simple(func(dir string) oci.Call { return s.spec.OCI.SignalProcess(dir, s.spec.OCI.ID, pid, int(sig)) })
	}
	send(guest, syscall.SIGSTOP)
	killAllOf(func() []int { return s.belowInSandbox(guest) }, send)
	send(guest, syscall.SIGKILL)
}

// belowInSandbox are the processes below one of the container, by their numbers in the sandbox.
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
	if child.null() != nil {
		return nil
	}
	defer child.close()
	if s.call(s.spec.OCI.Processes(dir, s.spec.OCI.ID), []uintptr{child.stdin.Fd(), listing.Fd(), child.stderr.Fd()}) != nil {
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
