// SPDX-License-Identifier: Apache-2.0

package podjob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/enter"
)

func signalNumber(name string) syscall.Signal { return unix.SignalNum(name) }

// setUser sets the user of the container. It differs from the user of the job only if that user is root.
func setUser(e *enter.Entry, s *runtimeapi.LinuxContainerSecurityContext, of *Image) error {
	e.UID, e.GID = os.Getuid(), os.Getgid()
	switch {
	case of != nil && os.Getuid() == 0:
		wanted := of.Config.User
		name, _, _ := strings.Cut(wanted, ":")
		if u := s.GetRunAsUser(); u != nil && strconv.FormatInt(u.GetValue(), 10) != name {
			wanted = strconv.FormatInt(u.GetValue(), 10)
		}
		a, err := accounts{e.Image}.user(wanted)
		if err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		e.UID, e.GID, e.Groups = a.uid, a.gid, append(e.Groups, a.groups...)
		e.Env = withDefault(e.Env, "HOME", a.home)
	case of != nil:
		e.Env = withDefault(e.Env, "HOME", "/")
	case s.GetRunAsUsername() != "":
		return status.Errorf(codes.InvalidArgument, "user %q: want a number", s.GetRunAsUsername())
	}
	if u := s.GetRunAsUser(); u != nil {
		e.UID = int(u.GetValue())
	}
	if g := s.GetRunAsGroup(); g != nil {
		e.GID = int(g.GetValue())
	}
	for _, g := range s.GetSupplementalGroups() {
		e.Groups = append(e.Groups, int(g))
	}
	if os.Getuid() != 0 && (e.UID != os.Getuid() || e.GID != os.Getgid()) {
		return status.Errorf(codes.InvalidArgument, "user %d, group %d: the job runs as %d, %d, and cannot change that", e.UID, e.GID, os.Getuid(), os.Getgid())
	}
	return nil
}

// launched is a process with its output.
type launched struct {
	process        *os.Process
	stdout, stderr *os.File
}

func (l launched) close() { _, _ = l.stdout.Close(), l.stderr.Close() }

// launchContainer starts the first process of a container, in its own namespaces. When the process ends, the kernel kills all other processes of the
// container.
func launchContainer(e enter.Entry) (launched, error) {
	var l launched
	if err := os.MkdirAll(e.Root, 0o700); err != nil {
		return l, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return l, err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return l, err
	}
	l.stdout, l.stderr = outR, errR
	cmd := exec.Command("/proc/self/exe", enter.Marker, enter.ModeEnter) //nolint:noctx // it ends with its container, and with the job
	cmd.Stdout, cmd.Stderr, cmd.Env = outW, errW, []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_DAC_OVERRIDE}
	}
	group, err := startIn(e.Cgroup, cmd)
	if err == nil {
		l.process, err = beginProcess(context.Background(), cmd, e)
	}
	_, _, _ = outW.Close(), errW.Close(), group.Close()
	if err != nil {
		l.close()
	}
	return l, err
}

// beginProcess starts cmd, sends it the entry, and waits until its program runs. With a parent such as nsenter, which keeps the pipe, it waits until
// cmd has ended. If ctx ends earlier, beginProcess kills cmd and the processes in its session.
func beginProcess(ctx context.Context, cmd *exec.Cmd, e enter.Entry) (*os.Process, error) {
	specR, specW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	readyR, readyW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer readyR.Close()
	cmd.ExtraFiles = append([]*os.File{specR, readyW}, cmd.ExtraFiles...)
	err = cmd.Start()
	_, _ = specR.Close(), readyW.Close()
	if err != nil {
		_ = specW.Close()
		return nil, err
	}
	pid := cmd.Process.Pid
	defer context.AfterFunc(ctx, func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })()
	err = json.NewEncoder(specW).Encode(e)
	err = errors.Join(err, specW.Close())
	said, readErr := io.ReadAll(readyR) // ends when the program has replaced this one
	message, entered := bytes.CutPrefix(said, []byte{enter.Mark})
	if entered && len(message) == 0 && err == nil && readErr == nil {
		return cmd.Process, nil
	}
	_ = cmd.Process.Kill()
	_, _ = cmd.Process.Wait()
	switch {
	case len(message) > 0:
		return nil, errors.New(string(message))
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, errors.Join(errors.New("the namespaces of the container could not be entered: it has ended, or is about to"), err, readErr)
}

// enterNamespaces returns a command that runs in the namespaces of a process.
func enterNamespaces(pid int) (*exec.Cmd, error) {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	args := []string{"--target", strconv.Itoa(pid), "--mount", "--pid"}
	if os.Getuid() != 0 {
		args = append(args, "--user", "--preserve-credentials")
	}
	// 3 and 4 are the pipes of beginProcess. Descriptor 5 is this program, because its path may differ in the namespaces.
	cmd := exec.Command("nsenter", append(args, "--", "/proc/self/fd/5", enter.Marker, enter.ModeEnter)...) //nolint:noctx // its command has a context of its own, and it ends with the job
	cmd.ExtraFiles = []*os.File{self}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}
