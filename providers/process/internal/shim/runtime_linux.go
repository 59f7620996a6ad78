// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oci"
)

// A runtime command starts a process and ends. The process becomes a child of the supervisor, which is a
// subreaper.

// runtimeEnv is the part of the machine's environment that a runtime needs.
var runtimeEnv = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

// createContainer creates the container with its runtime, verifies it, and starts its process.
func (s *supervisor) createContainer(out *streams, child *childIO) (<-chan syscall.WaitStatus, int, error) {
	o := s.spec.OCI
	if o.Sandbox != "" {
		return s.createGuest(out, child)
	}
	status, pid, err := s.createOnly(out, child)
	if err == nil {
		err = verifyProcess(pid, &s.spec)
	}
	if err == nil {
		err = s.callRuntime(func(dir string) oci.Call { return o.Start(dir, o.ID) })
	}
	if err != nil {
		killDescendants(s.children)
		s.discardContainer()
		return nil, 0, err
	}
	return status, pid, nil
}

func (s *supervisor) createOnly(out *streams, child *childIO) (<-chan syscall.WaitStatus, int, error) {
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
	return s.startByRuntime(out, child, s.spec.TTY, func(dir string) (oci.Call, error) {
		return s.holdFirst(o.Create(dir, o.ID, o.Bundle, s.spec.TTY))
	})
}

// executeCommand runs another process in the container.
func (s *supervisor) executeCommand(req request, out *streams, child *childIO) (<-chan syscall.WaitStatus, int, error) {
	o := s.spec.OCI
	if o.Sandbox != "" {
		return s.executeGuest(req, out, child)
	}
	return s.startByRuntime(out, child, req.TTY, func(dir string) (oci.Call, error) {
		if err := oci.Process(dir, o.Config, req.Argv, req.TTY); err != nil {
			return oci.Call{}, err
		}
		return o.Exec(dir, o.ID, req.TTY), nil
	})
}

// startByRuntime runs a command of the runtime that starts a process with the streams.
func (s *supervisor) startByRuntime(out *streams, child *childIO, terminal bool, prepare func(dir string) (oci.Call, error)) (<-chan syscall.WaitStatus, int, error) {
	dir, err := os.MkdirTemp(s.spec.OCI.Bundle, "c")
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(dir)
	call, err := prepare(dir)
	if err != nil {
		return nil, 0, err
	}
	var socket *console
	if terminal {
		if socket, err = listenConsole(call.Console()); err != nil {
			return nil, 0, err
		}
		defer socket.Close()
		if err := child.openNull(); err != nil {
			return nil, 0, err
		}
	}
	child.chownStreams(s.spec.UID, s.spec.GID)
	defer s.children.keepUnknown()()
	if err := s.callBeside(call, child.fileDescriptors()); err != nil {
		return nil, 0, notFound(err)
	}
	pid, err := call.PID()
	if err != nil {
		return nil, 0, err
	}
	status := s.children.adoptChild(pid)
	if terminal {
		if out.stdout, err = socket.receiveTerminal(); err != nil {
			return nil, 0, err
		}
		out.stdin = out.stdout
	}
	return status, pid, nil
}

// callRuntime runs a command of the runtime without streams.
func (s *supervisor) callRuntime(prepare func(dir string) oci.Call) error {
	dir, err := os.MkdirTemp(s.spec.OCI.Bundle, "c")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	child := &childIO{}
	if err := child.openNull(); err != nil {
		return err
	}
	defer child.close()
	return s.runCall(prepare(dir), child.fileDescriptors())
}

// callTimeout is the timeout for a runtime command, which usually takes a tenth of a second: images are mounted
// before, and the started processes outlive it. A hanging runtime must not prevent the removal of a container.
const callTimeout = time.Minute

// callBeside runs a command of the runtime that starts a process. With gVisor, the command runs in the cgroup of
// the sandbox.
func (s *supervisor) callBeside(c oci.Call, files []uintptr) error {
	if !s.isSandboxed() {
		return s.runCall(c, files)
	}
	status, pid, err := s.forkInSandbox(c, files, false)
	if err != nil {
		return err
	}
	return awaitCall(s.children, callTimeout, c, status, pid)
}

// runCall starts a command and waits for its end.
func (s *supervisor) runCall(c oci.Call, files []uintptr) error {
	return callWithin(s.children, callTimeout, c, files)
}

func callWithin(children *children, limit time.Duration, c oci.Call, files []uintptr) error {
	status, pid, err := children.start(func() (int, error) { return forkCall(c, files, &syscall.SysProcAttr{}) })
	if err != nil {
		return fmt.Errorf("run %s: %w", c.Argv[0], err)
	}
	return awaitCall(children, limit, c, status, pid)
}

// forkCall starts a command, or the program that executes it, in its own session.
func forkCall(c oci.Call, files []uintptr, attr *syscall.SysProcAttr) (int, error) {
	attr.Setsid = true
	path := c.Argv[0]
	if c.Before != nil {
		path = ownPath()
		ownMounts(attr)
	}
	return syscall.ForkExec(path, slices.Concat(c.Before, c.Argv), &syscall.ProcAttr{Env: runtimeEnv, Files: files, Sys: attr})
}

// awaitCall waits for the end of a command, and kills it after limit.
func awaitCall(children *children, limit time.Duration, c oci.Call, status <-chan syscall.WaitStatus, pid int) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case ended := <-status:
		if code := exitCode(ended); code != 0 {
			return c.Failed(fmt.Sprintf("it ended with code %d", code))
		}
		return nil
	case <-timer.C:
		_ = children.signalChild(pid, true, syscall.SIGKILL) // an error means that the process has ended
		<-status
		return c.Failed(fmt.Sprintf("it did not end within %v and was killed", limit))
	}
}

// discardContainer removes the runtime's state of the container after its last process has ended.
func (s *supervisor) discardContainer() {
	o := s.spec.OCI
	if o == nil {
		return
	}
	// With memory volumes, the runtime has to remove its own files from them.
	if s.commands.killed.Load() || o.ID == o.Sandbox && len(o.Volumes) == 0 {
		if err := o.Forget(o.ID, o.Sandbox); err != nil {
			fmt.Fprintln(os.Stderr, err) // the daemon tries again when it removes the container
		}
	} else if o.Knows(o.ID) {
		if err := s.callRuntime(func(dir string) oci.Call { return o.Delete(dir, o.ID) }); err != nil {
			fmt.Fprintln(os.Stderr, err) // the daemon tries again when it removes the container
		}
	}
	if err := errors.Join(UnmountRoot("."), os.RemoveAll(o.Bundle)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// refused is an error of a runtime with the kind that its text means.
type refused struct {
	error
	kind error
}

func (r refused) Is(target error) bool { return target == r.kind }

// notFound sets the kind of an error of a runtime: fs.ErrNotExist or fs.ErrPermission, by its text.
func notFound(err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, "error finding executable"):
		// Use the text of other runtimes, which users know.
		_, name, _ := strings.Cut(text, "error finding executable ")
		name, _, _ = strings.Cut(name, " in PATH")
		return refused{fmt.Errorf("exec: %s: executable file not found in $PATH", name), fs.ErrNotExist}
	case strings.Contains(text, "executable file not found"), strings.Contains(text, "no such file or directory"):
		return refused{err, fs.ErrNotExist}
	case strings.Contains(text, "permission denied"):
		return refused{err, fs.ErrPermission}
	}
	return err
}
