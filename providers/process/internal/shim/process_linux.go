// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Self returns this process.
func Self() Process { return ProcessOf(os.Getpid()) }

// ProcessOf returns the process that currently has the PID.
func ProcessOf(pid int) Process {
	_, start, _ := statOf(strconv.Itoa(pid))
	return Process{PID: pid, Start: start}
}

// Alive reports whether the process still runs. It returns false for a zombie, and if the PID was reused.
func (p Process) Alive() bool {
	if p.PID == 0 {
		return false
	}
	_, start, state := statOf(strconv.Itoa(p.PID))
	return start == p.Start && state != 0 && state != 'Z' && state != 'X'
}

// statOf returns the parent, the start time and the state of a process. The state is 0 if there is no such
// process.
func statOf(pid string) (parent int, start uint64, state byte) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, 0, 0
	}
	// The command name is in parentheses, and may itself contain parentheses.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 20 {
		return 0, 0, 0
	}
	parent, _ = strconv.Atoi(string(fields[1]))
	start, _ = strconv.ParseUint(string(fields[19]), 10, 64)
	return parent, start, fields[0][0]
}

// Descendants returns the descendants of a process.
func Descendants(pid int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	below := map[int][]int{}
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, _, state := statOf(e.Name()); state != 0 && state != 'Z' {
			below[parent] = append(below[parent], child)
		}
	}
	found := below[pid]
	for i := 0; i < len(found); i++ {
		found = append(found, below[found[i]]...)
	}
	return found
}

// listsChildren reports whether the kernel lists the children of a thread; most kernels do.
var listsChildren = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil
})

// quickDescendants returns the descendants of pid without a search through all processes of the machine. It may
// miss some while others end.
func quickDescendants(pid int) []int {
	if !listsChildren() {
		return Descendants(pid)
	}
	found := childrenOf(pid)
	for i := 0; i < len(found); i++ {
		found = append(found, childrenOf(found[i])...)
	}
	return found
}

// childrenOf returns the children of all threads of the process: a child belongs to the thread that started it.
func childrenOf(pid int) []int {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return nil // the process has ended, and its children have another parent
	}
	var children []int
	for _, thread := range threads {
		line, err := os.ReadFile(tasks + thread.Name() + "/children")
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(line)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// becomeReaper makes this process a subreaper: orphaned descendants become its children, so that none escapes.
func becomeReaper() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// killDescendants kills descendants until none is left, because a process may fork during a search. It searches
// less and less often while it finds no new process, because then it only waits for killed processes.
func killDescendants(c *children) {
	const often, seldom = 2 * time.Millisecond, 50 * time.Millisecond
	next, pause := time.Now(), often
	killed := map[int]bool{}
	for c.reapEnded() {
		if !time.Now().Before(next) {
			pause = min(2*pause, seldom)
			for _, pid := range quickDescendants(os.Getpid()) {
				killBelow(os.Getpid(), pid)
				if !killed[pid] {
					killed[pid], pause = true, often
				}
			}
			next = time.Now().Add(pause)
		}
		<-time.After(often)
	}
}

// waitGone waits until the process has ended, or ctx ends.
func waitGone(ctx context.Context, p Process) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	for p.Alive() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			<-time.After(5 * time.Millisecond)
			continue
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20)
	}
	return nil
}

// socketPath returns a path to the socket in dir that is short enough for a socket address.
func socketPath(dir string) (string, func(), error) {
	f, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), socketFile), func() { f.Close() }, nil
}

// detachedAttributes returns attributes that let a process outlive this one.
func detachedAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// openTerminal opens a new terminal, from the devices in the mount namespace of this thread.
func openTerminal() (terminal, process *os.File, err error) {
	path := "/dev/pts/ptmx"
	if unix.Access(path, unix.R_OK|unix.W_OK) != nil {
		path = "/dev/ptmx" // ordinary users may open this file
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a terminal: %w", &os.PathError{Op: "open", Path: path, Err: err})
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		unix.Close(fd)
		return nil, nil, fmt.Errorf("make a terminal: %w", err)
	}
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		unix.Close(fd)
		return nil, nil, fmt.Errorf("make a terminal: %w", errno)
	}
	return os.NewFile(uintptr(fd), filepath.Base(path)), os.NewFile(peer, "terminal"), nil
}

func setSize(terminal *os.File, s Size) {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: s.Height, Col: s.Width})
	})
}
