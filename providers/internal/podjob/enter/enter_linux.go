// SPDX-License-Identifier: Apache-2.0

package enter

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func init() {
	if len(os.Args) < 3 || os.Args[1] != Marker {
		return
	}
	switch os.Args[2] {
	case ModeEnter:
		os.Exit(enter())
	case ModeStream:
		if err := stream(append(os.Args, "")[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case ModeRun:
		if os.Getuid() == 0 && os.Getenv(privateMounts) == "" {
			fmt.Fprintln(os.Stderr, takePrivateMounts())
			os.Exit(1)
		}
	}
}

// privateMounts is the variable that marks a process with its own mount namespace.
const privateMounts = "VIRTUAL_KUBELET_PRIVATE_MOUNTS"

// takePrivateMounts starts this program again in its own mount namespace, so that no volume of a killed job stays mounted. It returns only on
// failure.
func takePrivateMounts() error {
	goruntime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	return unix.Exec("/proc/self/exe", os.Args, append(os.Environ(), privateMounts+"=1"))
}

// enter sets up a process of a container, and then executes its program.
func enter() int {
	goruntime.LockOSThread()
	syscall.CloseOnExec(4)
	ready := os.NewFile(4, "ready")
	err := enterAndRun(ready)
	_, _ = fmt.Fprint(ready, err)
	return 127
}

func enterAndRun(ready io.Writer) error {
	var e Entry
	spec := os.NewFile(3, "spec")
	if err := json.NewDecoder(spec).Decode(&e); err != nil {
		return err
	}
	_ = spec.Close()
	if e.Cgroup != "" {
		if err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.FormatInt(e.OOMScore, 10)), 0); err != nil {
			return fmt.Errorf("order of the kernel's choice when memory is used up: %w", err)
		}
	}
	if !e.Inside {
		if err := makeRoot(e); err != nil {
			return err
		}
	}
	if err := os.Chdir(e.Dir); err != nil {
		return fmt.Errorf("working directory: %w", err) // the error names the directory
	}
	if err := become(e); err != nil {
		return err
	}
	path, err := lookPath(e.Argv[0], e.Env)
	if err != nil {
		return err
	}
	if _, err := ready.Write([]byte{Mark}); err != nil {
		return err
	}
	if err := unix.Exec(path, e.Argv, e.Env); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}

// join returns a clean absolute path of parts. The initialization of path/filepath would be too late: see the package documentation.
func join(parts ...string) string {
	var kept []string
	for part := range strings.SplitSeq(strings.Join(parts, "/"), "/") {
		switch part {
		case "", ".":
		case "..":
			kept = kept[:max(0, len(kept)-1)]
		default:
			kept = append(kept, part)
		}
	}
	return "/" + strings.Join(kept, "/")
}

// become changes to the user of the container, and gives up the rights of the setup.
func become(e Entry) error {
	if e.Confined {
		if err := confine(); err != nil {
			return fmt.Errorf("give up capabilities: %w", err)
		}
	}
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

// usual are the usual capabilities of containers, without the capability to make devices, because no list restricts the machine's devices, and
// without CAP_NET_RAW, because a container shares the network of its machine, and could bypass the machine's routes and read other traffic.
const usual = 1<<unix.CAP_AUDIT_WRITE | 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID | 1<<unix.CAP_KILL |
	1<<unix.CAP_NET_BIND_SERVICE | 1<<unix.CAP_SETFCAP | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_SETUID | 1<<unix.CAP_SYS_CHROOT

// confine limits the privileges that the program and its child processes can gain.
func confine() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if usual&(uint64(1)<<c) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL { // an older kernel answers EINVAL for unknown capabilities
			return err
		}
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
		for dir := range strings.SplitSeq(list, ":") {
			path := name
			if dir != "" { // an empty entry means the working directory
				path = strings.TrimSuffix(dir, "/") + "/" + name
			}
			if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("start %s: no such program on PATH of the container", name)
}
