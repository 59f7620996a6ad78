// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// errMoved ends a walk after a container has moved its current directory.
var errMoved = errors.New("a directory was moved while it was measured")

// walker counts the files below a directory. It keeps only one directory open, and goes back through "..", because a container can nest directories
// deeper than the limits of paths and open files.
type walker struct {
	use  Use
	dev  uint64         // of the counted directory; mounts below the directory are not part of the volume
	seen map[inode]bool // files with several names
	fd   int            // the current directory
	path []level        // from the top to the current directory
	buf  [32 << 10]byte
}

// level is a directory that was read.
type level struct {
	id   inode
	dirs []string // directories not entered yet
}

// measureDir counts the files below a directory. Vanished files do not count, a file with several names counts once, and links are not followed. If
// the count is incomplete, AtLeast is set, and the error has the reason.
func measureDir(ctx context.Context, dir string) (Use, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return Use{}, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	w := &walker{fd: fd, seen: map[inode]bool{}}
	defer func() { unix.Close(w.fd) }()
	var top unix.Stat_t
	if err := unix.Fstat(fd, &top); err != nil {
		return Use{}, &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	w.dev = idOf(&top).dev
	w.countFile(&top)
	w.readDirectory(ctx, idOf(&top))
	for len(w.path) > 0 && err == nil {
		err = w.nextDirectory(ctx)
	}
	w.use.AtLeast = err != nil
	return w.use, err
}

// nextDirectory enters the next directory, or leaves the current one.
func (w *walker) nextDirectory(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	here := &w.path[len(w.path)-1]
	if len(here.dirs) == 0 {
		return w.leaveDirectory()
	}
	name := here.dirs[len(here.dirs)-1]
	here.dirs = here.dirs[:len(here.dirs)-1]
	fd, err := unix.Openat(w.fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil //nolint:nilerr // the directory vanished, or only its containers may read it
	}
	var own unix.Stat_t
	if err := unix.Fstat(fd, &own); err != nil || idOf(&own).dev != w.dev {
		unix.Close(fd)
		return nil //nolint:nilerr // a file system was mounted there since the directory was read
	}
	unix.Close(w.fd)
	w.fd = fd
	w.readDirectory(ctx, idOf(&own))
	return nil
}

// leaveDirectory goes back to the parent directory.
func (w *walker) leaveDirectory() error {
	w.path = w.path[:len(w.path)-1]
	if len(w.path) == 0 {
		return nil
	}
	fd, err := unix.Openat(w.fd, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	unix.Close(w.fd)
	w.fd = fd
	var above unix.Stat_t
	if err := unix.Fstat(fd, &above); err != nil {
		return err
	}
	if idOf(&above) != w.path[len(w.path)-1].id {
		return errMoved
	}
	return nil
}

// readDirectory counts the files of the current directory.
func (w *walker) readDirectory(ctx context.Context, id inode) {
	here := level{id: id}
	for ctx.Err() == nil {
		n, err := unix.ReadDirent(w.fd, w.buf[:])
		if n <= 0 || err != nil {
			break
		}
		_, _, names := unix.ParseDirent(w.buf[:n], -1, nil)
		for _, name := range names {
			var s unix.Stat_t
			if err := unix.Fstatat(w.fd, name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil || idOf(&s).dev != w.dev {
				continue
			}
			w.countFile(&s)
			if s.Mode&unix.S_IFMT == unix.S_IFDIR {
				here.dirs = append(here.dirs, name)
			}
		}
	}
	w.path = append(w.path, here)
}

func (w *walker) countFile(s *unix.Stat_t) {
	if s.Nlink > 1 && s.Mode&unix.S_IFMT != unix.S_IFDIR {
		if w.seen[idOf(s)] {
			return
		}
		w.seen[idOf(s)] = true
	}
	w.use.Bytes += s.Blocks * 512
	w.use.Inodes++
}

func idOf(s *unix.Stat_t) inode {
	return inode{uint64(s.Dev), s.Ino} //nolint:unconvert // the type differs between architectures
}
