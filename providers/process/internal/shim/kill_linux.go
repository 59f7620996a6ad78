// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Between a lookup and a kill, a PID may be reused. So this code opens a pidfd first, then checks that the PID
// still belongs to the intended process, and kills by the pidfd. Without pidfds, because of the kernel or a
// system call filter, a tiny race remains.

// KillProcess kills a process, and never another process that has reused its PID.
func KillProcess(p Process) error {
	if p.PID == 0 {
		return nil
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil { // without pidfds, the PID may have been reused, rarely
		if !p.Alive() {
			return nil
		}
		if err := unix.Kill(p.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill process %d: %w", p.PID, err)
		}
		return nil
	}
	defer unix.Close(fd)
	if !p.Alive() {
		return nil
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}

// killBelow kills a process if it is a descendant of another one.
func killBelow(ancestor, pid int) { signalBelow(ancestor, pid, unix.SIGKILL) }

// signalBelow sends a signal to a process if it is a descendant of another one.
func signalBelow(ancestor, pid int, sig unix.Signal) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	if errors.Is(err, unix.ESRCH) || !isBelow(ancestor, pid) {
		return
	}
	signalHeld(pid, fd, err, sig)
}

func isBelow(ancestor, pid int) bool {
	for pid > 1 {
		if pid, _, _ = statOf(strconv.Itoa(pid)); pid == ancestor {
			return true
		}
	}
	return false
}

// signalHeld sends a signal by the pidfd or, if there is none, by the PID. It ignores errors, because they mean
// that the process has ended.
func signalHeld(pid, fd int, notHeld error, sig unix.Signal) {
	if notHeld != nil {
		_ = unix.Kill(pid, sig)
		return
	}
	_ = unix.PidfdSendSignal(fd, sig, nil, 0)
}

// heldAtOnce limits the open pidfds, because the limit of descriptors may be low.
const heldAtOnce = 256

// killMembers kills the processes in the cgroup dir.
func killMembers(dir string) error {
	listed, err := listMembers(dir)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(listed, heldAtOnce) {
		if err := killSome(dir, some); err != nil {
			return err
		}
	}
	return nil
}

func killSome(dir string, pids []int) error {
	type holding struct {
		fd  int
		err error
	}
	held := make(map[int]holding, len(pids))
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		held[pid] = holding{fd, err}
		if err == nil {
			defer unix.Close(fd)
		}
	}
	still, err := listMembers(dir)
	if err != nil {
		return err
	}
	for _, pid := range still {
		if h, ok := held[pid]; ok {
			signalHeld(pid, h.fd, h.err, unix.SIGKILL)
		}
	}
	return nil
}
