// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oci"
)

// A gVisor container has no process on the machine except its file server (runsc-gofer). The file server becomes
// a child of the container's supervisor, as the sandbox becomes a child of the sandbox's supervisor. When the
// file server is killed, the runtime kills the container.

// fileServer is argv[0] of the process that opens the files of a container.
const fileServer = "runsc-gofer"

// isSandboxed reports whether the container is in a gVisor sandbox, or is the sandbox itself.
func (s *supervisor) isSandboxed() bool { return s.spec.OCI != nil && s.spec.OCI.Sandbox != "" }

// createGuest creates and starts the container in one step, because the runtime takes the streams at the start.
func (s *supervisor) createGuest(out *streams, child *childIO) (<-chan syscall.WaitStatus, int, error) {
	status, pid, err := s.runGuest(out, child)
	if err == nil && s.spec.Network != nil {
		err = s.joinNetwork()
	}
	if err != nil {
		if o := s.spec.OCI; o.ID == o.Sandbox {
			killDescendants(s.children)
		}
		s.discardContainer()
		killDescendants(s.children)
		return nil, 0, err
	}
	return status, pid, nil
}

func (s *supervisor) runGuest(out *streams, child *childIO) (<-chan syscall.WaitStatus, int, error) {
	o := s.spec.OCI
	if s.spec.Image != "" {
		if err := mountRoot(&s.spec); err != nil {
			return nil, 0, err
		}
	}
	path := filepath.Join(o.Bundle, oci.ConfigFile)
	if err := os.WriteFile(path, o.Config, 0o600); err != nil {
		return nil, 0, fmt.Errorf("write the configuration of the container: %w", err)
	}
	defer os.Remove(path) // the file has the environment, and is not read again
	if o.ID != o.Sandbox {
		return s.keepGuest(out, child)
	}
	return s.startByRuntime(out, child, false, func(dir string) (oci.Call, error) { // the sandbox is a process of the machine
		return o.Run(dir, o.ID, o.Bundle, false), nil
	})
}

// fileServer returns the PID of the file server below this process, or 0 if it has ended.
func (s *supervisor) fileServer() int {
	for _, list := range []func(int) []int{quickDescendants, Descendants} {
		for _, pid := range list(os.Getpid()) {
			line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
			if name, _, _ := bytes.Cut(line, []byte{0}); err == nil && string(name) == fileServer {
				return pid
			}
		}
	}
	return 0
}

// keepGuest runs the runtime's command that lasts as long as the container, and returns when the container runs
// or has already ended.
func (s *supervisor) keepGuest(out *streams, child *childIO) (<-chan syscall.WaitStatus, int, error) {
	o := s.spec.OCI
	dir, err := os.MkdirTemp(o.Bundle, "c") // removed with the bundle
	if err != nil {
		return nil, 0, err
	}
	call := o.Keep(dir, o.ID, o.Bundle, s.spec.TTY)
	var socket *console
	if s.spec.TTY {
		if socket, err = listenConsole(call.Console()); err != nil {
			return nil, 0, err
		}
		defer socket.Close()
		if err := child.openNull(); err != nil {
			return nil, 0, err
		}
	}
	child.chownStreams(s.spec.UID, s.spec.GID)
	if call, err = s.holdFirst(call); err != nil {
		return nil, 0, err
	}
	ended, pid, err := s.forkInSandbox(call, child.fileDescriptors(), false)
	if err != nil {
		return nil, 0, err
	}
	ended, err = s.awaitBegin(call, ended, pid, func() bool { return o.Runs(o.ID, o.Sandbox) }, func(status syscall.WaitStatus) bool {
		return !status.Signaled() && o.Kept(call, o.ID)
	})
	if err != nil {
		return nil, 0, notFound(err)
	}
	if socket != nil {
		if out.stdout, err = socket.receiveTerminal(); err != nil {
			return nil, 0, err
		}
		out.stdin = out.stdout
	}
	status := make(chan syscall.WaitStatus, 1)
	go func() { status <- s.guestStatus(call, <-ended) }()
	return status, s.fileServer(), nil
}

// guestStatus returns the exit status of a container, given the exit status of its command. If the command ended
// before the container, it returns SIGKILL, because the container is killed then.
func (s *supervisor) guestStatus(call oci.Call, ended syscall.WaitStatus) syscall.WaitStatus {
	if ended.Signaled() || !s.spec.OCI.Kept(call, s.spec.OCI.ID) {
		s.commands.lost.Store(&ended)
		return syscall.WaitStatus(syscall.SIGKILL)
	}
	return statusOf(ended.ExitStatus())
}

// statusOf returns the wait status that corresponds to an exit code of a shell.
func statusOf(code int) syscall.WaitStatus {
	if code > 128 && code <= 128+64 {
		return syscall.WaitStatus(code - 128)
	}
	return syscall.WaitStatus((code & 0xff) << 8)
}

// forkInSandbox starts a command in the cgroup of the sandbox, so that its resources count for the pod.
func (s *supervisor) forkInSandbox(c oci.Call, files []uintptr, terminal bool) (<-chan syscall.WaitStatus, int, error) {
	type forked struct {
		status <-chan syscall.WaitStatus
		pid    int
		err    error
	}
	result := make(chan forked)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread was in another cgroup
		var f forked
		defer func() { result <- f }()
		group, err := s.spec.OCI.Group.joinOwnGroups()
		if err != nil {
			f.err = err
			return
		}
		defer s.spec.OCI.Group.joinParentGroups()
		attr := &syscall.SysProcAttr{Setctty: terminal, UseCgroupFD: group != nil}
		if group != nil {
			attr.CgroupFD = int(group.Fd())
			defer group.Close()
		}
		f.status, f.pid, f.err = s.children.start(func() (int, error) { return forkCall(c, files, attr) })
		if f.err != nil {
			f.err = fmt.Errorf("run %s: %w", c.Argv[0], f.err)
		}
	}()
	f := <-result
	return f.status, f.pid, f.err
}

// killSandbox kills the sandbox of the container, and with it the container. A container that has ended before
// keeps its exit code, which its command returns.
func (s *supervisor) killSandbox() {
	supervisor, err := ReadState(s.spec.OCI.Supervisor)
	if err != nil || supervisor.Ended() {
		return // the caller kills the container itself
	}
	s.commands.killed.Store(true)
	if KillProcess(supervisor.Init) != nil {
		s.commands.killed.Store(false)
	}
}

// fateOfSandbox returns the reason if the container ended because its sandbox or its command ended. The
// supervisor of the sandbox records the reason.
func (s *supervisor) fateOfSandbox() (reason, message string) {
	call := s.commands.lost.Load()
	if call == nil || s.commands.killed.Load() {
		return "", ""
	}
	supervisor, err := ReadState(s.spec.OCI.Supervisor)
	if err == nil && !supervisor.Ended() {
		ctx, cancel := context.WithTimeout(context.Background(), readersTimeout)
		defer cancel()
		if waitGone(ctx, supervisor.Init) != nil {
			return s.fateOfCall(*call)
		}
		_ = waitGone(ctx, supervisor.Shim) // after the timeout, the reason stays unknown
		supervisor, err = ReadState(s.spec.OCI.Supervisor)
	}
	if err != nil {
		return "", ""
	}
	message = "the sandbox of the pod has ended"
	if supervisor.Message != "" {
		message += ": " + supervisor.Message
	}
	return supervisor.Reason, message
}

// fateOfCall returns the reason if the container was killed because its command ended, while the sandbox runs.
func (s *supervisor) fateOfCall(call syscall.WaitStatus) (reason, message string) {
	how := fmt.Sprintf("with code %d", call.ExitStatus())
	reason = Unknown
	if call.Signaled() {
		how = "by signal " + call.Signal().String()
		if call.Signal() == syscall.SIGKILL && s.spec.OCI.Group.OOMKilled() {
			reason = "OOMKilled" // the memory limit of the pod includes the command
		}
	}
	return reason, "the process of the runtime that kept the container ended " + how + " before the container, which was killed then"
}

// probeGuest starts a sandbox and ends it.
func (s *supervisor) probeGuest(ready *os.File, out *streams, child *childIO) error {
	status, pid, err := s.launchMain(out, child)
	if err != nil {
		return fmt.Errorf("a sandbox cannot be made: %w", err)
	}
	_ = s.children.signalChild(pid, false, syscall.SIGKILL) // an error means that the process has ended
	<-status
	killDescendants(s.children)
	s.discardContainer()
	_, err = ready.WriteString("ok")
	return err
}
