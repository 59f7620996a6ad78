// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// maxOpen limits the open directories of a tree. A container can nest directories deeper than the limits of
	// descriptors and path lengths allow. So deeper directories are moved next to the tree, and removed as trees
	// of their own.
	maxOpen = 64
	// batch is the number of names of a directory that are read at once.
	batch = 1024
)

// RemoveTree removes dir and its content, including directories without permissions, at any depth and size. It
// does not follow links or enter other mounts. If a file cannot be removed, RemoveTree removes all others and
// returns an error; it can be called again. A missing dir is no error.
func RemoveTree(dir string) error {
	parent, err := unix.Open(filepath.Dir(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(dir), Err: err}
	}
	defer unix.Close(parent)
	name := filepath.Base(dir)
	r := remover{top: parent, name: name}
	r.removeTree(name)
	for r.done < r.moved {
		r.done++
		r.removeTree(r.asideName(r.done))
	}
	if r.err != nil {
		return fmt.Errorf("remove %s: %w", dir, r.err)
	}
	return nil
}

// remover removes a tree without recursion.
type remover struct {
	top  int    // the parent directory of the tree
	name string // of the tree
	// moved is the number of directories that were moved next to the tree, done the number of those that were
	// removed.
	moved, done int
	open        []*level
	err         error // the first error
}

// level is a directory whose entries are being removed.
type level struct {
	dir    *os.File
	name   string
	names  []string // names that were read and not yet removed
	passed bool     // something was removed since the first name was read
	failed bool     // an entry cannot be removed, so neither can the directory
}

func (r *remover) recordFailure(op, name string, err error) {
	if r.err == nil {
		r.err = &os.PathError{Op: op, Path: name, Err: err}
	}
	if n := len(r.open); n > 0 {
		r.open[n-1].failed = true
	}
}

// parentFD returns the descriptor of the parent of the deepest level, or of a new tree.
func (r *remover) parentFD() int {
	if n := len(r.open); n > 0 {
		return int(r.open[n-1].dir.Fd())
	}
	return r.top
}

// asideName returns the name of the n-th moved directory. Trees are named by IDs, so no other file has such a name.
func (r *remover) asideName(n int) string { return r.name + ".deep-" + strconv.Itoa(n) }

// removeTree removes name in the top directory.
func (r *remover) removeTree(name string) {
	r.removeEntry(name)
	for len(r.open) > 0 {
		at := r.open[len(r.open)-1]
		if len(at.names) == 0 && !r.readNames(at) {
			continue
		}
		next := at.names[len(at.names)-1]
		at.names = at.names[:len(at.names)-1]
		r.removeEntry(next)
	}
}

// readNames reads more names, or removes the empty directory.
func (r *remover) readNames(at *level) bool {
	names, err := at.dir.Readdirnames(batch)
	if err == nil && len(names) > 0 {
		at.names = names
		return true
	}
	if err != nil && !errors.Is(err, io.EOF) {
		r.recordFailure("read", at.name, err)
	}
	// Removals during the reading may hide names: read again until nothing is removed.
	if at.passed && !at.failed {
		at.passed = false
		if _, err := at.dir.Seek(0, io.SeekStart); err == nil {
			return false
		}
	}
	at.dir.Close()
	r.open = r.open[:len(r.open)-1]
	if at.failed {
		if n := len(r.open); n > 0 {
			r.open[n-1].failed = true
		}
		return false
	}
	r.recordRemoval(at.name, unix.Unlinkat(r.parentFD(), at.name, unix.AT_REMOVEDIR))
	return false
}

func (r *remover) recordRemoval(name string, err error) {
	switch {
	case err != nil && !errors.Is(err, unix.ENOENT):
		r.recordFailure("remove", name, err)
	case len(r.open) > 0:
		r.open[len(r.open)-1].passed = true
	}
}

// removeEntry removes an entry of the deepest open directory. It opens an entry that is a directory, and moves it
// next to the tree if maxOpen directories are open.
func (r *remover) removeEntry(name string) {
	in := r.parentFD()
	err := unix.Unlinkat(in, name, 0)
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		r.recordRemoval(name, err)
		return
	}
	if denied := err; len(r.open) >= maxOpen {
		r.moved++
		if err = unix.Renameat(in, name, r.top, r.asideName(r.moved)); err != nil {
			r.moved--
			r.recordFailure("move", name, errors.Join(denied, err))
			return
		}
		r.recordRemoval(name, nil)
		return
	}
	fd, err := enterDirectory(in, name)
	if err != nil {
		r.recordFailure("open", name, err)
		return
	}
	r.open = append(r.open, &level{dir: os.NewFile(uintptr(fd), name), name: name})
}

// enterDirectory opens a directory of the same mount, and sets the permissions that a non-root owner needs to
// empty and move it.
func enterDirectory(parent int, name string) (int, error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if os.Geteuid() != 0 {
		if fd, err := unix.Openat(parent, name, flags|unix.O_PATH, 0); err == nil {
			// If Chmod fails, a call below fails, too.
			_ = unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700)
			unix.Close(fd)
		}
	}
	// The call needs Linux 5.6, and the provider Linux 5.12.
	return unix.Openat2(parent, name, &unix.OpenHow{
		Flags:   flags | unix.O_RDONLY,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	})
}

// syncFiles syncs the file system of dir.
func syncFiles(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd()))), f.Close())
}
