// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// deviceNodes are the devices that every container has.
var deviceNodes = []string{"null", "zero", "full", "random", "urandom", "tty"}

// attachment is a tree of the machine, taken before the root is left and put into the container after.
// So the kernel finds the place in the container as the container's processes would: no link leads out.
type attachment struct {
	Mount
	fd  int
	dir bool
}

// buildRoot makes the root of the container in this thread's mount namespace, and enters it.
func buildRoot(spec *Spec, mountProc func() error) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep mounts from the machine: %w", err)
	}
	if err := mountRoot(spec); err != nil {
		return err
	}
	attachments, err := takeAll(spec)
	if err != nil {
		return err
	}
	// Before the machine's is out of sight, which is what one without rights must not see more than.
	if err := mountProc(); err != nil {
		return err
	}
	if err := enterMount(rootDir); err != nil {
		return err
	}
	if err := mountSystem(spec); err != nil {
		return err
	}
	for _, a := range attachments {
		if err := a.put(); err != nil {
			return err
		}
	}
	if err := closeCgroups(spec); err != nil {
		return err
	}
	if err := linkDevices(); err != nil {
		return err
	}
	if err := setSysctls(spec.Sysctls, spec.NetNS != ""); err != nil {
		return err
	}
	if err := hide(spec); err != nil {
		return err
	}
	if err := os.MkdirAll(spec.Cwd, 0o755); err != nil {
		return fmt.Errorf("make the working directory %s: %w", spec.Cwd, err)
	}
	if !spec.ReadOnly {
		return nil
	}
	return setFlags("/", unix.MOUNT_ATTR_RDONLY, false)
}

// mountRoot mounts the container's own layer over the image, or its directory on itself.
func mountRoot(spec *Spec) error {
	flags := uintptr(unix.MS_NODEV)
	if spec.Privileged {
		flags = 0
	}
	if spec.Image == "" {
		if err := unix.Mount(rootDir, rootDir, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount the root of the container: %w", err)
		}
		if flags == 0 {
			return nil
		}
		return setFlags(rootDir, unix.MOUNT_ATTR_NODEV, false)
	}
	options := "lowerdir=" + spec.Image + ",upperdir=upper,workdir=work"
	if spec.Isolation == User {
		options += ",userxattr"
	}
	if err := unix.Mount("overlay", rootDir, "overlay", flags, options); err != nil {
		return fmt.Errorf("mount the root of the container over its image: %w", err)
	}
	return nil
}

// takeAll takes every tree that the container will see.
func takeAll(spec *Spec) ([]attachment, error) {
	var all []attachment
	take := func(m Mount) error {
		a, err := take(m)
		if err == nil {
			all = append(all, a)
		}
		return err
	}
	for _, name := range deviceNodes {
		if err := take(Mount{Source: "/dev/" + name, Target: "/dev/" + name, Device: true}); err != nil {
			return nil, err
		}
	}
	if spec.Isolation == User {
		// Only the owner of the network may mount a new one.
		if err := take(Mount{Source: "/sys", Target: "/sys", ReadOnly: true, RecursiveReadOnly: true}); err != nil {
			return nil, err
		}
	}
	for _, m := range append(cgroupMounts(spec), spec.Mounts...) {
		if err := take(m); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func take(m Mount) (attachment, error) {
	info, err := os.Stat(m.Source)
	if err != nil {
		return attachment{}, fmt.Errorf("mount %s at %s: %w", m.Source, m.Target, err)
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, m.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return attachment{}, fmt.Errorf("mount %s at %s: %w", m.Source, m.Target, err)
	}
	return attachment{Mount: m, fd: fd, dir: info.IsDir()}, nil
}

// put mounts the tree in the container.
func (a attachment) put() error {
	defer unix.Close(a.fd)
	fail := func(err error) error { return fmt.Errorf("mount %s at %s: %w", a.Source, a.Target, err) }
	target, err := makeTarget(a.Target, a.dir)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(target)
	if err := a.flags(); err != nil {
		return fail(err)
	}
	if err := unix.MoveMount(a.fd, "", target, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fail(err)
	}
	return nil
}

// flags sets what may be done with the tree, and how mounts below it are passed on.
func (a attachment) flags() error {
	propagation := uint64(unix.MS_PRIVATE)
	switch {
	case a.Shared:
		propagation = unix.MS_SHARED
	case a.Slave:
		propagation = unix.MS_SLAVE
	}
	if err := setAttr(a.fd, "", &unix.MountAttr{Propagation: propagation}, true); err != nil {
		return err
	}
	set := uint64(0)
	if !a.Device {
		set |= unix.MOUNT_ATTR_NODEV
	}
	if set != 0 {
		if err := setAttr(a.fd, "", &unix.MountAttr{Attr_set: set}, true); err != nil {
			return err
		}
	}
	if !a.ReadOnly {
		return nil
	}
	return setAttr(a.fd, "", &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}, a.RecursiveReadOnly)
}

func setAttr(fd int, path string, attr *unix.MountAttr, recursive bool) error {
	flags := uint(0)
	if path == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	return unix.MountSetattr(fd, path, flags, attr)
}

func setFlags(path string, set uint64, recursive bool) error {
	if err := setAttr(unix.AT_FDCWD, path, &unix.MountAttr{Attr_set: set}, recursive); err != nil {
		return fmt.Errorf("restrict the mount %s: %w", path, err)
	}
	return nil
}

// makeTarget makes a place to mount at, and opens it.
func makeTarget(path string, dir bool) (int, error) {
	parent := filepath.Dir(path)
	if dir {
		parent = path
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return 0, err
	}
	if !dir {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0o644)
		// What cannot be opened is there, and can be mounted over.
		if err == nil {
			f.Close()
		} else if !errors.Is(err, unix.ENXIO) && !errors.Is(err, os.ErrPermission) {
			return 0, err
		}
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: path, Err: err}
	}
	// A link of the image could make the mount hide what tells the kernel's view of a process.
	var at unix.Statfs_t
	if err := unix.Fstatfs(fd, &at); err == nil && at.Type == unix.PROC_SUPER_MAGIC {
		unix.Close(fd)
		return 0, fmt.Errorf("%s is in /proc, where nothing may be mounted", path)
	}
	return fd, nil
}

// enterMount makes the mounted directory the root, and forgets the old one.
func enterMount(dir string) error {
	if err := unix.Chdir(dir); err != nil {
		return fmt.Errorf("enter the root of the container: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("enter the root of the container: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the root of the machine: %w", err)
	}
	return unix.Chdir("/")
}
