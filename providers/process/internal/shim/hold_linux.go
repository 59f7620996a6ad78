// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oci"
)

// A runtime resolves the paths of mounts when it mounts them. By then, a running container may have put a
// symbolic link on a path in a volume. So a process in its own mount namespace opens the file or directory
// beneath the volume, and mounts it in a place where no container can write. Then it executes the runtime, which
// mounts from that place.
//
// The runtime also creates the mount points, by paths that it has checked before, which is racy, too. So if a
// mount point is in a volume, everything else of the machine is read-only for the runtime.

const (
	// holdFile is the file with the mounts for holdMain, in the directory of the call.
	holdFile = "hold.json"
	// cgroupRoot is the cgroup file system, which runtimes other than gVisor must be able to write to.
	cgroupRoot = "/sys/fs/cgroup"
	// holdTries limits the retries of a lookup if directories are renamed at the same time.
	holdTries = 1000
)

// holdFirst makes the call run holdMain first, if there are mounts to open.
func (s *supervisor) holdFirst(c oci.Call) (oci.Call, error) {
	if !s.spec.opensMounts() {
		return c, nil
	}
	o := s.spec.OCI
	data, err := json.Marshal(Spec{Mounts: s.spec.Mounts, OCI: &OCI{Bundle: o.Bundle, Sandbox: o.Sandbox, Runtime: oci.Runtime{Root: o.Root}}})
	if err == nil {
		err = os.WriteFile(filepath.Join(c.Dir, holdFile), data, 0o600)
	}
	if err != nil {
		return c, fmt.Errorf("write the mounts of the container: %w", err)
	}
	c.Before = []string{Argv0, holdMode, c.Dir}
	return c, nil
}

// ownMounts gives a process its own mount namespace and, without root, its own user namespace, as the runtime
// would do.
func ownMounts(attr *syscall.SysProcAttr) {
	attr.Cloneflags |= unix.CLONE_NEWNS
	if uid := os.Geteuid(); uid != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
		attr.Credential = &syscall.Credential{}
	}
}

// holdMain opens the mounts listed in dir, and executes argv. It returns only on failure.
func holdMain(dir string, argv []string) int {
	err := holdMounts(dir)
	if err == nil {
		err = fmt.Errorf("run %s: %w", argv[0], unix.Exec(argv[0], argv, runtimeEnv))
	}
	if err := oci.LogError(dir, err); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

// holdMounts mounts the sources of the container's mounts in heldDir.
func holdMounts(dir string) error {
	var spec Spec
	data, err := os.ReadFile(filepath.Join(dir, holdFile))
	if err == nil {
		err = json.Unmarshal(data, &spec)
	}
	if err != nil {
		return fmt.Errorf("read the mounts of the container: %w", err)
	}
	// Do not propagate mounts to the machine.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep mounts from the machine: %w", err)
	}
	place := filepath.Join(spec.OCI.Bundle, heldDir)
	if err := os.Mkdir(place, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := unix.Mount("tmpfs", place, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64k,mode=755"); err != nil {
		return fmt.Errorf("make the place for mounts: %w", err)
	}
	for i, m := range spec.Mounts {
		if held := spec.Held(i); held != m.Source {
			if err := m.mountAt(held); err != nil {
				return fmt.Errorf("mount %s: %w", m.Target, err)
			}
		}
	}
	if !spec.hasNestedMounts() {
		return nil
	}
	root, err := filepath.Abs(rootDir)
	if err != nil {
		return err
	}
	paths := []string{"/proc", spec.OCI.Root, spec.OCI.Bundle, root}
	if spec.OCI.Sandbox == "" {
		paths = append(paths, cgroupRoot)
	}
	for _, m := range spec.Mounts {
		if m.Source == "/" {
			return nil // the container can write to the whole machine anyway
		}
		if m.Way == "" && !m.Device {
			paths = append(paths, filepath.Clean(m.Source))
		}
	}
	if err := onlyWrite(paths); err != nil {
		return fmt.Errorf("keep the runtime from writing elsewhere: %w", err)
	}
	return nil
}

// onlyWrite makes all mounts of this process read-only, except the given paths and the mounts below them.
func onlyWrite(paths []string) error {
	slices.Sort(paths) // parents come first
	paths = slices.Compact(paths)
	fds := make([]int, len(paths))
	for i, path := range paths {
		fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return &os.PathError{Op: "open_tree", Path: path, Err: err}
		}
		defer unix.Close(fd)
		fds[i] = fd
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return os.NewSyscallError("mount_setattr", err)
	}
	for i, path := range paths {
		if err := unix.MoveMount(fds[i], "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS); err != nil {
			return &os.PathError{Op: "move_mount", Path: path, Err: err}
		}
	}
	return nil
}

// mountAt bind-mounts the file or directory of the mount at place.
func (m Mount) mountAt(place string) error {
	f, err := m.openHandle()
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.Mkdir(place, 0o755) //nolint:gosec // a mount covers the place
	} else {
		err = os.WriteFile(place, nil, 0o644) //nolint:gosec // a mount covers the place
	}
	if err != nil {
		return err
	}
	return unix.Mount("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), place, "", unix.MS_BIND|unix.MS_REC, "")
}

// openHandle opens the source of the mount, of any file type, with O_PATH. It resolves each step beneath the step
// before, whatever links it contains.
func (m Mount) openHandle() (*os.File, error) {
	fd, err := unix.Open(m.Source, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the volume: %w", err)
	}
	for step := range strings.SplitSeq(m.Way, "//") {
		next, err := openBeneath(fd, step)
		unix.Close(fd)
		if err != nil {
			return nil, err
		}
		fd = next
	}
	return os.NewFile(uintptr(fd), m.Way), nil
}

// openBeneath opens a path beneath a directory.
func openBeneath(dir int, path string) (int, error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	for range holdTries {
		fd, err := unix.Openat2(dir, path, how)
		switch {
		case err == nil:
			return fd, nil
		case errors.Is(err, unix.EXDEV), errors.Is(err, unix.ELOOP):
			return -1, errors.New("a link on the way of its subPath leads out of the volume")
		case errors.Is(err, unix.ENOSYS):
			return -1, errors.New("a part of a volume is only mounted by Linux 5.6 or newer, where the node may not mount")
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
			return -1, fmt.Errorf("open its subPath in the volume: %w", err)
		}
	}
	return -1, errors.New("directories on the way of its subPath are renamed all the time")
}
