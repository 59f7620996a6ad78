// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const nonBlocking = unix.O_NONBLOCK

// canMount reports whether the process may mount: it tries a mount below root, after it has removed the leftovers of an earlier process. On a full
// disk, it tries a mount in memory instead, because a full disk does not prevent mounts.
func canMount(root string) bool {
	dir := filepath.Join(root, ".mount-probe")
	err := os.Mkdir(dir, 0o700)
	for _, memory := range []string{"/run", "/dev/shm"} {
		if err == nil || errors.Is(err, fs.ErrExist) {
			break
		}
		dir, err = os.MkdirTemp(memory, "vk-mount-probe-")
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return false
	}
	defer os.Remove(dir)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4096"); err != nil {
		return false
	}
	for unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) == nil {
	}
	return true
}

// inMemory reports whether a directory is on a file system in memory.
func inMemory(dir string) bool {
	var info unix.Statfs_t
	return unix.Statfs(dir, &info) == nil && (info.Type == unix.TMPFS_MAGIC || info.Type == unix.RAMFS_MAGIC)
}

// isMemoryMount reports whether dir is the mount point of a file system in memory.
func isMemoryMount(dir string) bool {
	var own, parent unix.Stat_t
	return inMemory(dir) && unix.Lstat(dir, &own) == nil && unix.Lstat(filepath.Dir(dir), &parent) == nil && own.Dev != parent.Dev
}

// mountMemory mounts a file system in memory, without swap if the kernel supports that.
func mountMemory(dir string, size int64) error {
	options := ""
	if size > 0 {
		options = "size=" + strconv.FormatInt(size, 10)
	}
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, joinOptions(options, "noswap"))
	if errors.Is(err, unix.EINVAL) {
		err = unix.Mount("tmpfs", dir, "tmpfs", 0, options)
	}
	return err
}

func joinOptions(options, more string) string {
	if options == "" {
		return more
	}
	return options + "," + more
}

// bindMount mounts the file at name in root at target. It opens the file and mounts the opened file, so later changes of the name do not matter. An
// existing identical mount of an earlier container stays.
//
// Unless the mount propagates both ways, the copy is detached from its source: a mount or unmount in the copy must not appear there.
func bindMount(root *os.Root, name, target string, propagation runtimeapi.MountPropagation, recursive bool) error {
	source, err := openHandle(root, name)
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Lstat(target); err == nil && os.SameFile(now, info) {
		return nil
	}
	if err := makeTarget(target, info.IsDir()); err != nil {
		return err
	}
	var rec uintptr
	if recursive {
		rec = unix.MS_REC
	}
	if err := unix.Mount(descriptorPath(source), target, "", unix.MS_BIND|rec, ""); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	kind := uintptr(unix.MS_PRIVATE)
	switch propagation {
	case runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL:
		return nil
	case runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER:
		kind = unix.MS_SLAVE
	}
	return unix.Mount("", target, "", kind|rec, "")
}

// makeTarget makes an empty mount point. Only this process can write to its parent directory.
func makeTarget(target string, dir bool) error {
	if err := detachBelow(target); err != nil {
		return err
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if dir {
		return os.Mkdir(target, 0o750)
	}
	return os.WriteFile(target, nil, 0o640)
}

// openHandle opens a file of any type at name in root with O_PATH, so a pipe does not block, and a device is not opened. It follows links step by
// step, each step through os.Root.
func openHandle(root *os.Root, name string) (*os.File, error) {
	for range 40 {
		f, err := root.OpenFile(name, unix.O_PATH, 0)
		if err != nil {
			return nil, err
		}
		info, err := f.Stat()
		if err == nil && info.Mode()&fs.ModeSymlink == 0 {
			return f, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
		link, err := root.Readlink(name)
		if err != nil {
			return nil, err
		}
		if filepath.IsAbs(link) {
			return nil, errors.New("a link leads out of the volume")
		}
		// The path is not cleaned, because .. in a link is relative to the directory of the link.
		name = filepath.Dir(name) + "/" + link
	}
	return nil, unix.ELOOP
}

// descriptorPath returns a path to an open file that cannot be redirected.
func descriptorPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// changeOne gives a file or directory a group and another mode. It opens the file only once, because a container may replace the file, and the
// replacement must not get this mode. A link has its own group, but no mode.
func changeOne(root *os.Root, name string, group int, mode func(fs.FileMode) fs.FileMode) error {
	f, err := root.OpenFile(name, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// Change the group first: the change clears the setgid bit.
	if err := ignoreRights(unix.Fchownat(int(f.Fd()), "", -1, group, unix.AT_EMPTY_PATH)); err != nil {
		return &os.PathError{Op: "chown", Path: name, Err: err}
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil
	}
	return os.Chmod(descriptorPath(f), mode(info.Mode()))
}

// gidOf returns the group of a file.
func gidOf(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(s.Gid)
	}
	return -1
}

func isOurs(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
