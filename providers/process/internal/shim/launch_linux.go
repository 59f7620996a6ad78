// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/netns"
)

// A process gets namespaces, root directory, capabilities and cgroups from the thread that forks it. So a
// thread of the shim becomes what the process is to be, forks it, and is never used for anything else.

// launched is how a fork went.
type launched struct {
	status <-chan syscall.WaitStatus
	pid    int
	err    error
}

// launch starts the main process. Its thread stays: the kernel kills the process when that ends.
func (s *supervisor) launch(out *streams, child *childIO) (<-chan syscall.WaitStatus, int, error) {
	if s.spec.OCI != nil {
		return s.create(out, child)
	}
	result := make(chan launched)
	go func() {
		runtime.LockOSThread()
		l := s.fork(out, child, s.spec.Argv, s.spec.TTY, s.spec.HostPID || !s.spec.Isolation.Namespaces(), s.build)
		result <- l
		if l.err == nil {
			select {}
		}
	}()
	l := <-result
	if l.err == nil && s.spec.OOMScoreAdj != 0 {
		// To lower it needs a right that machines may not give.
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", l.pid), fmt.Append(nil, s.spec.OOMScoreAdj), 0)
	}
	return l.status, l.pid, l.err
}

// enter starts a process in the namespaces of the main one.
func (s *supervisor) enter(req request, out *streams, child *childIO) (<-chan syscall.WaitStatus, int, error) {
	if s.spec.OCI != nil {
		return s.execute(req, out, child)
	}
	result := make(chan launched)
	go func() {
		// Never unlocked: the thread ends with the goroutine. It lives as long as the process, which
		// the kernel would kill otherwise.
		runtime.LockOSThread()
		l := s.fork(out, child, req.Argv, req.TTY, s.spec.HostPID || !s.spec.Isolation.Namespaces(), s.join)
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

// fork prepares this thread and forks argv. bound lets the kernel kill the process when this thread ends. One
// that joins a pid namespace cannot be bound, since it takes its parent, whom it does not see,
// for gone; but it ends with the namespace.
func (s *supervisor) fork(out *streams, child *childIO, argv []string, tty, bound bool, prepare func() error) launched {
	fail := func(err error) launched { return launched{err: err} }
	group, err := s.spec.Cgroup.enter()
	if err != nil {
		return fail(err)
	}
	defer s.spec.Cgroup.leave()
	if err := prepare(); err != nil {
		return fail(err)
	}
	if tty {
		terminal, process, err := openTerminal()
		if err != nil {
			return fail(err)
		}
		out.stdin, out.stdout = terminal, terminal
		child.stdin, child.stdout, child.stderr = process, process, process
	}
	child.own(s.spec.UID, s.spec.GID)
	path, err := lookPath(argv[0], s.spec.Env, s.spec.Cwd)
	if err != nil {
		return fail(err)
	}
	attr := &syscall.SysProcAttr{Setsid: true, Setctty: tty, UseCgroupFD: group != nil}
	if bound {
		attr.Pdeathsig = syscall.SIGKILL
	}
	if group != nil {
		attr.CgroupFD = int(group.Fd())
		defer group.Close()
	}
	if os.Geteuid() == 0 && s.spec.Isolation != User {
		attr.Credential = &syscall.Credential{Uid: s.spec.UID, Gid: s.spec.GID, Groups: s.spec.Groups}
	}
	if err := s.restrict(); err != nil {
		return fail(err)
	}
	status, pid, err := s.children.start(func() (int, error) {
		return syscall.ForkExec(path, argv, &syscall.ProcAttr{Dir: s.spec.Cwd, Env: s.spec.Env, Files: child.fds(), Sys: attr})
	})
	if err != nil {
		return fail(fmt.Errorf("run %q: %w", argv[0], err))
	}
	return launched{status, pid, nil}
}

// build makes the namespaces and the root of a new container around this thread.
func (s *supervisor) build() error {
	switch {
	case s.spec.Isolation == Chroot:
		return enterRoot(rootDir)
	case !s.spec.Isolation.Namespaces():
		return nil
	}
	flags := unix.CLONE_NEWNS | unix.CLONE_NEWUTS
	if !s.spec.HostIPC {
		flags |= unix.CLONE_NEWIPC
	}
	if !s.spec.HostPID && s.spec.PIDOf == 0 {
		flags |= unix.CLONE_NEWPID
	}
	if err := unix.Unshare(flags); err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	if s.spec.PIDOf != 0 {
		if err := joinNamespace(s.spec.PIDOf, "pid", unix.CLONE_NEWPID); err != nil {
			return err
		}
	}
	if s.spec.NetNS != "" {
		if err := netns.Enter(s.spec.NetNS); err != nil {
			return err
		}
	}
	if s.spec.Hostname != "" {
		if err := unix.Sethostname([]byte(s.spec.Hostname)); err != nil {
			return fmt.Errorf("set the host name %q: %w", s.spec.Hostname, err)
		}
	}
	return buildRoot(&s.spec, s.mountProc)
}

// mountProc mounts the processes that the container sees. The kernel shows those of who mounts: the first process of a
// new pid namespace does it, and stays to take the orphans.
func (s *supervisor) mountProc() error {
	if s.spec.HostPID || s.spec.PIDOf != 0 {
		return mountProc(rootDir + "/proc")
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		w.Close()
		return err
	}
	defer null.Close()
	_, _, err = s.children.start(func() (int, error) {
		return syscall.ForkExec(self(), []string{Argv0, "first"}, &syscall.ProcAttr{
			Env: []string{"GOMAXPROCS=1"}, Files: []uintptr{null.Fd(), null.Fd(), 2, w.Fd()},
			Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
		})
	})
	w.Close()
	if err != nil {
		return fmt.Errorf("start the first process of the container: %w", err)
	}
	word, err := io.ReadAll(r)
	if err == nil && string(word) != "ok" {
		err = errors.New(string(word))
	}
	return err
}

// first is the first process of a container's pid namespace.
func first(ready *os.File) {
	err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if err == nil {
		err = mountProc(rootDir + "/proc")
	}
	if err != nil {
		_, _ = ready.WriteString(err.Error())
		return
	}
	newChildren() // takes the orphans
	_, _ = ready.WriteString("ok")
	ready.Close()
	select {}
}

// probe makes a container and stops short of its process.
func (s *supervisor) probe(ready *os.File) error {
	out, child, err := openStdio(false, false)
	if err != nil {
		return err
	}
	defer out.close()
	defer child.close()
	if s.guest() {
		return s.probeGuest(ready, &out, child)
	}
	_, _, err = s.launch(&out, child)
	reached := errors.Is(err, fs.ErrNotExist)
	if s.spec.OCI != nil {
		// A runtime has words only: those for a command that is not there have its name.
		reached = err != nil && strings.Contains(err.Error(), s.spec.Argv[0])
	}
	if !reached {
		return fmt.Errorf("a container cannot be made: %w", err)
	}
	_, err = ready.WriteString("ok")
	return err
}
