// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// entry is how a process of a container begins. It passes through a pipe: nothing of it is in a command line or on a disk.
type entry struct {
	Argv, Env  []string
	Dir        string
	Mounts     []mount
	Root       string // an empty directory for its root
	Hide       string // a directory of the machine that it is not to have
	Image      string // the files of its image; "": those of the machine
	Upper      string // a directory for what it writes over its image
	UID, GID   int
	Groups     []int
	NoNewPrivs bool
	// Inside says that the process is in the namespaces of the container already.
	Inside bool
}

type mount struct {
	Source, Target string
	ReadOnly       bool
}

func signalNumber(name string) syscall.Signal { return unix.SignalNum(name) }

// user sets whom the container runs as: another user than that of the job only if that is root.
func (e *entry) user(s *runtimeapi.LinuxContainerSecurityContext, of *image) error {
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
		e.UID, e.GID, e.Groups = a.uid, a.gid, a.groups
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

// launch starts the first process of a container, in namespaces of its own: when it ends, the kernel kills all others.
func launch(e entry) (launched, error) {
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
	cmd := exec.Command("/proc/self/exe", Marker, modeEnter) //nolint:noctx // it ends with its container, and with the job
	cmd.Stdout, cmd.Stderr, cmd.Env = outW, errW, []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_DAC_OVERRIDE}
	}
	l.process, err = begin(context.Background(), cmd, e)
	_, _ = outW.Close(), errW.Close()
	if err != nil {
		l.close()
	}
	return l, err
}

// begin starts cmd, hands it the entry, and waits until its program runs; with a parent as nsenter, which keeps the pipe, until it has ended.
// When ctx ends before, cmd and what it started in its session are killed.
func begin(ctx context.Context, cmd *exec.Cmd, e entry) (*os.Process, error) {
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
	said, readErr := io.ReadAll(readyR) // it ends when the program has taken over
	trouble, entered := bytes.CutPrefix(said, []byte{enteredMark})
	if entered && len(trouble) == 0 && err == nil && readErr == nil {
		return cmd.Process, nil
	}
	_ = cmd.Process.Kill()
	_, _ = cmd.Process.Wait()
	switch {
	case len(trouble) > 0:
		return nil, errors.New(string(trouble))
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, errors.Join(errors.New("the namespaces of the container could not be entered: it has ended, or is about to"), err, readErr)
}

// enteredMark is what a process says right before it becomes the program of its container: an end before that is none of the program's.
const enteredMark = '+'

// enter is a process of a container before its program runs.
func enter() int {
	goruntime.LockOSThread()
	syscall.CloseOnExec(4)
	ready := os.NewFile(4, "ready")
	err := enterAndRun(ready)
	_, _ = fmt.Fprint(ready, err)
	return 127
}

func enterAndRun(ready io.Writer) error {
	var e entry
	spec := os.NewFile(3, "spec")
	if err := json.NewDecoder(spec).Decode(&e); err != nil {
		return err
	}
	_ = spec.Close()
	if !e.Inside {
		if err := makeRoot(e); err != nil {
			return err
		}
	}
	if err := os.Chdir(e.Dir); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	if err := become(e); err != nil {
		return err
	}
	path, err := lookPath(e.Argv[0], e.Env)
	if err != nil {
		return err
	}
	if _, err := ready.Write([]byte{enteredMark}); err != nil {
		return err
	}
	if err := unix.Exec(path, e.Argv, e.Env); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}

// become takes the user of the container, and gives up what setting up needed.
func become(e entry) error {
	if os.Getuid() == 0 {
		if err := unix.Setgroups(e.Groups); err != nil {
			return fmt.Errorf("groups %v: %w", e.Groups, err)
		}
		if err := syscall.Setgid(e.GID); err != nil {
			return fmt.Errorf("group %d: %w", e.GID, err)
		}
		if err := syscall.Setuid(e.UID); err != nil {
			return fmt.Errorf("user %d: %w", e.UID, err)
		}
	} else if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	if e.NoNewPrivs {
		return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	return nil
}

// lookPath finds a program as a shell does, on the PATH of the container.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, v := range env {
		list, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s: no such program on PATH of the job's node", name)
}

// inside is a command that runs in the namespaces of a process.
func inside(pid int) (*exec.Cmd, error) {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	args := []string{"--target", strconv.Itoa(pid), "--mount", "--pid"}
	if os.Getuid() != 0 {
		args = append(args, "--user", "--preserve-credentials")
	}
	// 3 and 4 are the pipes of begin; the path of this program may be another one there.
	cmd := exec.Command("nsenter", append(args, "--", "/proc/self/fd/5", Marker, modeEnter)...) //nolint:noctx // its command has a context of its own, and it ends with the job
	cmd.ExtraFiles = []*os.File{self}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}
