// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Files of a machine's image.
const (
	program     = "/bin/vk-cell"
	moduleDir   = "/modules"
	moduleOrder = moduleDir + "/order" // names of modules in load order
	switched    = "switched"           // the argument of the first process after its root is in memory
)

// bootMachine is the first process of a machine. When it ends, the machine ends.
func bootMachine() error {
	err := func() error {
		if len(os.Args) < 2 || os.Args[1] != switched {
			return switchRoot()
		}
		return prepareMachine()
	}()
	if err != nil {
		fmt.Fprintf(os.Stderr, "vk-cell: boot: %v\n", err)
	}
	return errors.Join(err, powerOff())
}

// mount is a file system of the machine.
type mount struct {
	kind, at, options string
	flags             uintptr
}

func mountAll(all ...mount) error {
	for _, m := range all {
		if err := os.MkdirAll(m.at, 0o755); err != nil { //nolint:gosec // pods may pass
			return err
		}
		if err := unix.Mount(m.kind, m.at, m.kind, m.flags, m.options); err != nil {
			return fmt.Errorf("mount %s at %s: %w", m.kind, m.at, err)
		}
	}
	return nil
}

// switchRoot moves the root to memory, because the kernel does not let a process replace the root from which the machine booted.
func switchRoot() error {
	if err := mountAll(
		mount{kind: "devtmpfs", at: "/dev", flags: unix.MS_NOSUID}, mount{kind: "proc", at: "/proc"}, mount{kind: "sysfs", at: "/sys"},
		mount{kind: "tmpfs", at: "/new", options: "mode=755,size=80%"},
	); err != nil {
		return err
	}
	if err := loadModules(); err != nil {
		return err
	}
	err := filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "/dev" || path == "/proc" || path == "/sys" || path == "/new" || path == moduleDir):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join("/new", path), 0o755) //nolint:gosec // pods may pass
		case d.Type() == fs.ModeSymlink:
			to, err := os.Readlink(path)
			return errors.Join(err, os.Symlink(to, filepath.Join("/new", path)))
		case !d.Type().IsRegular():
			return nil
		}
		if err := copyFile(path, filepath.Join("/new", path)); err != nil {
			return err
		}
		return os.Remove(path) // frees memory of the machine
	})
	if err != nil {
		return fmt.Errorf("copy the image into memory: %w", err)
	}
	if err := os.RemoveAll(moduleDir); err != nil {
		return err
	}
	for _, dir := range []string{"/dev", "/proc", "/sys"} {
		if err := os.MkdirAll(filepath.Join("/new", dir), 0o755); err != nil { //nolint:gosec // as above
			return err
		}
		if err := unix.Mount(dir, filepath.Join("/new", dir), "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s: %w", dir, err)
		}
	}
	if err := os.Chdir("/new"); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("take the root in memory: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("take the root in memory: %w", err)
	}
	return unix.Exec(program, []string{program, switched}, []string{"PATH=/bin", "HOME=/root"})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// loadModules loads the modules of the image. It skips modules for hardware that the machine does not have.
func loadModules() error {
	order, err := os.ReadFile(moduleOrder)
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(order)) {
		f, err := os.Open(filepath.Join(moduleDir, name+".ko"))
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		_ = f.Close()
		if err != nil && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EEXIST) {
			fmt.Fprintf(os.Stderr, "vk-cell: load the module %s: %v\n", name, err)
		}
	}
	return nil
}

// Files with the user data of the machine, for the agent.
const (
	stateDir     = "/var/lib/vk-cell"
	userDataFile = stateDir + "/user-data"
)

// prepareMachine prepares the machine and then keeps the agent running.
func prepareMachine() error {
	for _, dir := range []string{"/root", stateDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := mountAll(
		mount{kind: "tmpfs", at: "/dev/shm", options: "mode=1777", flags: unix.MS_NOSUID | unix.MS_NODEV}, mount{kind: "tmpfs", at: "/run", options: "mode=755", flags: unix.MS_NOSUID | unix.MS_NODEV},
		mount{kind: "cgroup2", at: "/sys/fs/cgroup", flags: unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
	); err != nil {
		return err
	}
	if err := os.MkdirAll("/tmp", 0o777); err != nil { //nolint:gosec // as any /tmp
		return err
	}
	if err := os.Chmod("/tmp", 0o777|os.ModeSticky); err != nil { //nolint:gosec // as above
		return err
	}
	if err := unix.Sethostname([]byte("cell")); err != nil {
		return err
	}
	// Pods may ping although they lack CAP_NET_RAW.
	if err := os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2147483647"), 0o644); err != nil { //nolint:gosec // it exists
		return err
	}
	if err := startNetwork(); err != nil {
		return err
	}
	data, err := userData()
	if err != nil {
		return err
	}
	if err := hideMetadata(); err != nil {
		return err
	}
	if err := os.WriteFile(userDataFile, data, 0o600); err != nil {
		return err
	}
	return keepAgent()
}

// maxStarts limits the starts of the agent: an agent that always fails at once can never serve a node.
const maxStarts = 5

// keepAgent starts the agent, and starts it again when it ends. As the first process, it also reaps every other process.
func keepAgent() error {
	for range maxStarts {
		cmd := exec.Command(program, "agent", "--user-data", userDataFile, "--dir", stateDir) //nolint:noctx // it ends with the machine
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		// The agent has its own mount namespace, so no mount of a pod stays when the agent ends.
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("start the agent: %w", err)
		}
		for {
			var status unix.WaitStatus
			pid, err := unix.Wait4(-1, &status, 0, nil)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return fmt.Errorf("wait for the agent: %w", err)
			}
			if pid == cmd.Process.Pid {
				fmt.Fprintf(os.Stderr, "vk-cell: the agent has ended, with %d\n", status.ExitStatus())
				break
			}
		}
	}
	return fmt.Errorf("the agent has ended %d times", maxStarts)
}

// powerOff ends the machine. It writes unsaved data to the disks before.
func powerOff() error {
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		return fmt.Errorf("end the machine: %w", err)
	}
	return nil
}
