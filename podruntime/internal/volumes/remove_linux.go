// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// detachBelow unmounts everything at dir or below it. It first makes a mount private, with all mounts inside: otherwise, an unmount in a shared copy
// would propagate to its source on the machine. Then it detaches the mount at once, even if it is in use, so that a later removal cannot enter it.
func detachBelow(dir string) error {
	for range 100 { // mounts can be on top of each other
		points, err := mountedBelow(dir)
		if err != nil || len(points) == 0 {
			return err
		}
		for _, point := range points {
			if err := detachMount(dir, point); err != nil {
				return fmt.Errorf("unmount %s: %w", point, err)
			}
		}
	}
	return fmt.Errorf("unmount below %s: there is always more", dir)
}

// detachMount removes one mount. It opens the mount through os.Root: containers may have changed directories on its path.
func detachMount(dir, point string) error {
	root, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer root.Close()
	rel, err := filepath.Rel(filepath.Dir(dir), point)
	if err != nil {
		return err
	}
	f, err := root.OpenFile(rel, unix.O_PATH, 0) // a link is not a mount, and fails below
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Mount("", descriptorPath(f), "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return unix.Unmount(descriptorPath(f), unix.MNT_DETACH)
}

// mountedBelow returns the outermost mount points at dir and below it.
func mountedBelow(dir string) ([]string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var points []string
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if point := unescapeField(fields[4]); isInside(dir, point) {
			points = append(points, point)
		}
	}
	slices.Sort(points)
	points = slices.Compact(points)
	all := slices.Clone(points)
	return slices.DeleteFunc(points, func(p string) bool {
		return slices.ContainsFunc(all, func(o string) bool { return o != p && isInside(o, p) })
	}), nil
}

// unescapeField decodes the octal escapes of blanks in the mount table.
func unescapeField(s string) string {
	var out strings.Builder
	for ; s != ""; s = s[1:] {
		if s[0] == '\\' && len(s) >= 4 {
			if n, err := strconv.ParseUint(s[1:4], 8, 8); err == nil {
				out.WriteByte(byte(n))
				s = s[3:]
				continue
			}
		}
		out.WriteByte(s[0])
	}
	return out.String()
}

// removeTree removes name in the directory parent with its content. It enters only directories of the same mount, and follows no link: a mount that
// appears in the meantime causes an error, not a loss of data.
func removeTree(parent, name string) error {
	fd, err := unix.Open(parent, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: parent, Err: err}
	}
	defer unix.Close(fd)
	r := remover{top: fd, name: name}
	if err := r.removeTree(fd, name, 0); err != nil {
		return err
	}
	// Deep directories come last: each was moved up, and is a separate tree.
	for i := 0; i < r.moved; i++ {
		if err := r.removeTree(fd, r.asideName(i), 0); err != nil {
			return err
		}
	}
	return nil
}

// remover removes a tree.
type remover struct {
	top   int    // the parent directory of the tree
	name  string // of the tree
	moved int    // number of directories that were moved up
}

// maxDepth bounds the number of open directories. A container can nest directories deeper than the limit of open files, so deeper directories are
// moved up and removed later.
const maxDepth = 100

func (r *remover) asideName(i int) string { return r.name + ".deep-" + strconv.Itoa(i) }

func (r *remover) removeTree(parent int, name string, depth int) error {
	err := unix.Unlinkat(parent, name, 0)
	switch {
	case err == nil || errors.Is(err, unix.ENOENT):
		return nil
	case !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM):
		return &os.PathError{Op: "remove", Path: name, Err: err}
	}
	if depth > maxDepth {
		if err := unix.Renameat(parent, name, r.top, r.asideName(r.moved)); err == nil {
			r.moved++
			return nil
		}
	}
	fd, err := enterDirectory(parent, name)
	if err != nil {
		return &os.PathError{Op: "remove", Path: name, Err: err}
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := r.removeTree(fd, n, depth+1); err != nil {
			return err
		}
	}
	if err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

// enterDirectory opens a directory of the same mount, and makes it writable if this process is not root.
func enterDirectory(parent int, name string) (int, error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if os.Geteuid() != 0 {
		if fd, err := unix.Openat(parent, name, flags|unix.O_PATH, 0); err == nil {
			// A failure shows below.
			_ = unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700)
			unix.Close(fd)
		}
	}
	fd, err := unix.Openat2(parent, name, &unix.OpenHow{
		Flags:   flags | unix.O_RDONLY,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	})
	if !errors.Is(err, unix.ENOSYS) {
		return fd, err
	}
	// On an older kernel, a different device identifies most mounts, and detachBelow has found no mount.
	fd, err = unix.Openat(parent, name, flags|unix.O_RDONLY, 0)
	if err != nil {
		return fd, err
	}
	var in, own unix.Stat_t
	if err := errors.Join(unix.Fstat(parent, &in), unix.Fstat(fd, &own)); err != nil || in.Dev != own.Dev {
		unix.Close(fd)
		return -1, unix.EXDEV
	}
	return fd, nil
}
