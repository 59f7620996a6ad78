// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oci"
)

// A container in a sandbox has no process of the machine. What there is of it is its file server, which becomes a child of the supervisor,
// as the sandbox does of its own: when that is killed, the runtime kills the container.

// fileServer is the first argument of the process that opens the files of a container.
const fileServer = "runsc-gofer"

// guest tells whether the container is in a sandbox, or is one.
func (s *supervisor) guest() bool { return s.spec.OCI != nil && s.spec.OCI.Sandbox != "" }

// createGuest makes the container and starts it: its streams are taken then.
func (s *supervisor) createGuest(out *streams, child *childIO) (<-chan syscall.WaitStatus, int, error) {
	status, pid, err := s.runGuest(out, child)
	if err != nil {
		s.discard()
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
	defer os.Remove(path) // it has the environment, and is never read again
	status, pid, err := s.made(out, child, s.spec.TTY, func(dir string) (oci.Call, error) {
		return o.Run(dir, o.ID, o.Bundle, s.spec.TTY), nil
	})
	if err != nil || o.ID == o.Sandbox {
		return status, pid, err // the sandbox is a process of the machine
	}
	status, err = s.waitGuest()
	return status, s.fileServer(), err
}

// fileServer is the process of that name below this one, 0 if it has ended.
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

// waitGuest returns where the status of the container will come.
func (s *supervisor) waitGuest() (<-chan syscall.WaitStatus, error) {
	dir, err := os.MkdirTemp(s.spec.OCI.Bundle, "c")
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	child := &childIO{}
	if err := child.null(); err != nil {
		r.Close()
		w.Close()
		return nil, err
	}
	defer child.close()
	call := s.spec.OCI.Wait(dir, s.spec.OCI.ID)
	waited, _, err := s.forkInSandbox(call, []uintptr{child.stdin.Fd(), w.Fd(), child.stderr.Fd()}, false)
	w.Close()
	if err != nil {
		r.Close()
		return nil, err
	}
	status := make(chan syscall.WaitStatus, 1)
	go func() {
		defer r.Close()
		said, _ := io.ReadAll(r) // what is missing is seen below
		<-waited
		code, err := oci.ExitCode(said)
		if err != nil {
			code = 128 + int(syscall.SIGKILL) // the sandbox has ended, and the container with it
			s.commands.sandboxEnded.Store(true)
		}
		status <- statusOf(code)
	}()
	return status, nil
}

// statusOf is the status of a process that a shell would know by that code.
func statusOf(code int) syscall.WaitStatus {
	if code > 128 && code <= 128+64 {
		return syscall.WaitStatus(code - 128)
	}
	return syscall.WaitStatus((code & 0xff) << 8)
}

// forkInSandbox starts a call in the control group of the sandbox, which pays for all that is done for it.
func (s *supervisor) forkInSandbox(c oci.Call, files []uintptr, terminal bool) (<-chan syscall.WaitStatus, int, error) {
	type forked struct {
		status <-chan syscall.WaitStatus
		pid    int
		err    error
	}
	result := make(chan forked)
	go func() {
		runtime.LockOSThread() // never unlocked: it was in another group
		var f forked
		defer func() { result <- f }()
		group, err := s.spec.OCI.Group.enter()
		if err != nil {
			f.err = err
			return
		}
		defer s.spec.OCI.Group.leave()
		attr := &syscall.SysProcAttr{Setsid: true, Setctty: terminal, UseCgroupFD: group != nil}
		if group != nil {
			attr.CgroupFD = int(group.Fd())
			defer group.Close()
		}
		f.status, f.pid, f.err = s.children.start(func() (int, error) {
			return syscall.ForkExec(c.Argv[0], c.Argv, &syscall.ProcAttr{Env: runtimeEnv, Files: files, Sys: attr})
		})
		if f.err != nil {
			f.err = fmt.Errorf("run %s: %w", c.Argv[0], f.err)
		}
	}()
	f := <-result
	return f.status, f.pid, f.err
}

// fateOfSandbox is why the container ended with its sandbox, if it did: the supervisor of that knows.
func (s *supervisor) fateOfSandbox() (reason, message string) {
	if !s.commands.sandboxEnded.Load() {
		return "", ""
	}
	keeper, err := ReadState(s.spec.OCI.Keeper)
	if err == nil && !keeper.Ended() {
		ctx, cancel := context.WithTimeout(context.Background(), lastWords)
		defer cancel()
		_ = waitGone(ctx, keeper.Shim) // one that takes longer leaves the reason open
		keeper, err = ReadState(s.spec.OCI.Keeper)
	}
	if err != nil {
		return "", ""
	}
	message = "the sandbox of the pod has ended"
	if keeper.Message != "" {
		message += ": " + keeper.Message
	}
	return keeper.Reason, message
}

// probeGuest makes a sandbox and ends it.
func (s *supervisor) probeGuest(ready *os.File, out *streams, child *childIO) error {
	status, pid, err := s.launch(out, child)
	if err != nil {
		return fmt.Errorf("a sandbox cannot be made: %w", err)
	}
	_ = s.children.signal(pid, false, syscall.SIGKILL) // an error means that it has ended
	<-status
	s.discard()
	killDescendants(s.children)
	_, err = ready.WriteString("ok")
	return err
}
