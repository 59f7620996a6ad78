// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// verifyProcess checks a created container before its start: masked paths must be masked, and the process must be
// in its cgroups. A runtime masks files with the container's own /dev/null, and skips files that it cannot mask;
// volumes and links of images can interfere. Some runtimes treat a relative cgroup path as an absolute one.
func verifyProcess(pid int, spec *Spec) error {
	if err := spec.Cgroup.requireMember(pid); err != nil {
		return err
	}
	root := fmt.Sprintf("/proc/%d/root", pid)
	if err := isProc(root + "/proc"); err != nil {
		return err
	}
	for _, path := range spec.Masked {
		if err := requireMasked(root + path); err != nil {
			return fmt.Errorf("%s is not hidden from the container: %w", path, err)
		}
	}
	for _, path := range spec.ReadOnlyPaths {
		var at unix.Statfs_t
		err := unix.Statfs(root+path, &at)
		if err == nil && at.Flags&unix.ST_RDONLY == 0 {
			err = errors.New("it can be written")
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("%s is not read-only for the container: %w", path, err)
		}
	}
	return nil
}

// requireMember returns an error if the process is not in the control group.
func (g Cgroup) requireMember(pid int) error {
	dirs := slices.Collect(maps.Values(g.V1))
	if g.V2 != "" {
		dirs = append(dirs, g.V2)
	}
	for _, dir := range dirs {
		data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			return err
		}
		if !slices.Contains(strings.Fields(string(data)), strconv.Itoa(pid)) {
			return fmt.Errorf("the runtime has put the container outside of its control group %s, so its limits would not hold", dir)
		}
	}
	return nil
}

// isProc checks that path is a proc file system, and not a link to one.
func isProc(path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("look at the container: %w", &os.PathError{Op: "open", Path: path, Err: err})
	}
	defer unix.Close(fd)
	var at unix.Statfs_t
	if err := unix.Fstatfs(fd, &at); err != nil {
		return fmt.Errorf("look at the container: %w", &os.PathError{Op: "statfs", Path: path, Err: err})
	}
	if at.Type != unix.PROC_SUPER_MAGIC {
		return errors.New("the container has something else than the kernel's processes at /proc")
	}
	return nil
}

// requireMasked checks that path is the null device, or an empty read-only directory.
func requireMasked(path string) error {
	var stat unix.Stat_t
	err := unix.Lstat(path, &stat)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFCHR:
		if unix.Major(stat.Rdev) == 1 && unix.Minor(stat.Rdev) == 3 {
			return nil
		}
	case unix.S_IFDIR:
		var at unix.Statfs_t
		if err := unix.Statfs(path, &at); err != nil {
			return err
		}
		if at.Type == unix.TMPFS_MAGIC && at.Flags&unix.ST_RDONLY != 0 {
			return nil
		}
	}
	return errors.New("its cover is not a file of the kernel")
}

// UnmountRoot unmounts the root of the container in dir, if it is mounted there.
func UnmountRoot(dir string) error {
	root := dir + "/" + rootDir
	for {
		err := unix.Unmount(root, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			return nil
		}
		if errors.Is(err, unix.EPERM) && os.Geteuid() != 0 {
			return nil // without the permission to unmount there are no mounts; the kernel checks the permission first
		}
		if err != nil {
			return fmt.Errorf("unmount the root of the container: %w", &os.PathError{Op: "unmount", Path: root, Err: err})
		}
	}
}
