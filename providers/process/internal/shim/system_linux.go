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

	"golang.org/x/sys/unix"
)

// Of what every container has, these directories are the kernel's.
var systemMounts = []struct {
	target, kind, options string
	flags                 uintptr
	optional              bool
}{
	{"/dev", "tmpfs", "mode=755,size=64k", unix.MS_NOSUID | unix.MS_NOEXEC, false},
	{"/dev/pts", "devpts", "newinstance,ptmxmode=0666,mode=0620", unix.MS_NOSUID | unix.MS_NOEXEC, false},
	{"/dev/shm", "tmpfs", "mode=1777,size=64m", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, false},
	{"/dev/mqueue", "mqueue", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, true},
	{"/sys", "sysfs", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY, false},
}

// mountProc mounts the processes of this thread's pid namespace.
func mountProc(path string) error {
	if err := realDir(path); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := unix.Mount("proc", path, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// mountSystem mounts them.
func mountSystem(spec *Spec) error {
	for _, m := range systemMounts {
		if m.target == "/sys" && spec.Isolation == User {
			continue // bound from the machine
		}
		if m.kind == "sysfs" && spec.Privileged {
			m.flags &^= unix.MS_RDONLY
		}
		if err := realDir(m.target); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
		err := unix.Mount(m.kind, m.target, m.kind, m.flags, m.options)
		if err != nil && !m.optional {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	if !manyCgroups(spec) {
		return nil
	}
	if err := unix.Mount("tmpfs", cgroupDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755,size=64k"); err != nil {
		return fmt.Errorf("mount %s: %w", cgroupDir, err)
	}
	return nil
}

// cgroupDir is where programs look for their limits.
const cgroupDir = "/sys/fs/cgroup"

// cgroupMounts shows a container its own cgroup, and no other. One without the rights of root sees /sys of the machine.
func cgroupMounts(spec *Spec) []Mount {
	if spec.Isolation != Root {
		return nil
	}
	var mounts []Mount
	mount := func(source, target string) {
		mounts = append(mounts, Mount{Source: source, Target: target, ReadOnly: !spec.Privileged})
	}
	for controller, dir := range spec.Cgroup.V1 {
		mount(dir, filepath.Join(cgroupDir, controller))
	}
	if spec.Cgroup.V2 != "" {
		mount(spec.Cgroup.V2, cgroupDir)
	}
	return mounts
}

// manyCgroups tells whether there is a directory for each controller, which have to be somewhere.
func manyCgroups(spec *Spec) bool { return spec.Isolation == Root && len(spec.Cgroup.V1) > 0 }

// closeCgroups keeps that place as it is.
func closeCgroups(spec *Spec) error {
	if !manyCgroups(spec) {
		return nil
	}
	return setFlags(cgroupDir, unix.MOUNT_ATTR_RDONLY, false)
}

// realDir makes a directory, and refuses a link of the image in its place.
func realDir(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Mkdir(path, 0o755)
	}
	if err == nil && !info.IsDir() {
		return fmt.Errorf("the image has something there that is no directory")
	}
	return err
}

// linkDevices makes the links that programs expect in /dev.
func linkDevices() error {
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(target, "/dev/"+name); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// sysctls are those that belong to the namespaces of every container.
var sysctls = []string{"kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.sem", "kernel.shm_rmid_forced",
	"kernel.shmall", "kernel.shmmax", "kernel.shmmni"}

// setSysctls sets those of the container's namespaces. network tells whether it has one of its own for that.
func setSysctls(values map[string]string, network bool) error {
	for name, value := range values {
		if !slices.Contains(sysctls, name) && !strings.HasPrefix(name, "fs.mqueue.") && (!network || !strings.HasPrefix(name, "net.")) {
			return fmt.Errorf("sysctl %s is not of a namespace that a container has", name)
		}
		path := filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
		if err := os.WriteFile(path, []byte(value), 0); err != nil {
			return fmt.Errorf("set sysctl %s: %w", name, err)
		}
	}
	return nil
}

// hide keeps the container from files of the kernel that tell of the machine or change it.
func hide(spec *Spec) error {
	for _, path := range spec.ReadOnlyPaths {
		fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return fmt.Errorf("make %s read-only: %w", path, err)
		}
		err = setAttr(fd, "", &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}, true)
		if err == nil {
			err = unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
		}
		unix.Close(fd)
		if err != nil {
			return fmt.Errorf("make %s read-only: %w", path, err)
		}
	}
	for _, path := range spec.Masked {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
			continue // not there, or not to be seen
		case info.IsDir():
			err = unix.Mount("tmpfs", path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=0k")
		default:
			err = unix.Mount("/dev/null", path, "", unix.MS_BIND, "")
		}
		if err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	return nil
}
