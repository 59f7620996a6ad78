// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
)

// launched is the result of a fork.
type launched struct {
	status <-chan syscall.WaitStatus
	pid    int
	err    error
}

// launchMain starts the main process.
func (s *supervisor) launchMain(out *streams, child *childIO) (<-chan syscall.WaitStatus, int, error) {
	if s.spec.OCI != nil {
		return s.createContainer(out, child)
	}
	status, pid, err := s.forkProgram(out, child, s.spec.Argv, s.spec.TTY)
	if err == nil && s.spec.OOMScoreAdj != 0 {
		// Ignore errors: lowering the score needs a capability that the daemon may not have.
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), fmt.Append(nil, s.spec.OOMScoreAdj), 0)
	}
	return status, pid, err
}

// enterContainer starts another process next to the main process.
func (s *supervisor) enterContainer(req request, out *streams, child *childIO) (<-chan syscall.WaitStatus, int, error) {
	if s.spec.OCI != nil {
		return s.executeCommand(req, out, child)
	}
	return s.forkProgram(out, child, req.Argv, req.TTY)
}

// forkProgram starts a program of the machine. The program inherits capabilities and cgroups from the forking
// thread, so a new thread changes its own for the fork, and is never reused. The thread must exist as long as the
// program: when the thread ends, the kernel kills the program.
func (s *supervisor) forkProgram(out *streams, child *childIO, argv []string, tty bool) (<-chan syscall.WaitStatus, int, error) {
	result := make(chan launched)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		l := s.forkProcess(out, child, argv, tty)
		if l.err != nil {
			result <- l
			return
		}
		ended := make(chan syscall.WaitStatus, 1)
		result <- launched{ended, l.pid, nil}
		ended <- <-l.status
	}()
	l := <-result
	return l.status, l.pid, l.err
}

// forkProcess prepares this thread and forks argv.
func (s *supervisor) forkProcess(out *streams, child *childIO, argv []string, tty bool) launched {
	fail := func(err error) launched { return launched{err: err} }
	group, err := s.spec.Cgroup.joinOwnGroups()
	if err != nil {
		return fail(err)
	}
	defer s.spec.Cgroup.joinParentGroups()
	if tty {
		terminal, process, err := openTerminal()
		if err != nil {
			return fail(err)
		}
		out.stdin, out.stdout = terminal, terminal
		child.stdin, child.stdout, child.stderr = process, process, process
	}
	child.chownStreams(s.spec.UID, s.spec.GID)
	path, err := lookPath(argv[0], s.spec.Env, s.spec.Cwd)
	if err != nil {
		return fail(err)
	}
	attr := &syscall.SysProcAttr{Setsid: true, Setctty: tty, UseCgroupFD: group != nil, Pdeathsig: syscall.SIGKILL}
	if group != nil {
		attr.CgroupFD = int(group.Fd())
		defer group.Close()
	}
	if os.Geteuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: s.spec.UID, Gid: s.spec.GID, Groups: s.spec.Groups}
	}
	if err := s.restrictThread(); err != nil {
		return fail(err)
	}
	status, pid, err := s.children.start(func() (int, error) {
		return syscall.ForkExec(path, argv, &syscall.ProcAttr{Dir: s.spec.Cwd, Env: s.spec.Env, Files: child.fileDescriptors(), Sys: attr})
	})
	if err != nil {
		return fail(fmt.Errorf("run %q: %w", argv[0], err))
	}
	return launched{status, pid, nil}
}

// probeRuntime creates a container with a missing command, so everything but its process must work.
func (s *supervisor) probeRuntime(ready *os.File) error {
	out, child, err := openStdio(false, false)
	if err != nil {
		return err
	}
	defer out.close()
	defer child.close()
	if s.isSandboxed() {
		return s.probeGuest(ready, &out, child)
	}
	_, _, err = s.launchMain(&out, child)
	// A runtime returns only an error text. The text for a missing command contains its name.
	if err == nil || !errors.Is(err, fs.ErrNotExist) && !strings.Contains(err.Error(), s.spec.Argv[0]) {
		return fmt.Errorf("a container cannot be made: %w", err)
	}
	_, err = ready.WriteString("ok")
	return err
}
