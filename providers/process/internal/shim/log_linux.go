// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// openLast opens or creates the log file at path for appending. It follows no links in dir, the log directory of
// the pod, and never blocks: a pod that can write to the log directory must not redirect the writes of this
// process.
func openLast(dir, path string) (*os.File, error) {
	base := filepath.Dir(dir)
	way, err := filepath.Rel(base, path)
	if err != nil {
		return nil, err
	}
	at, err := unix.Open(base, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: base, Err: err}
	}
	names := strings.Split(way, string(filepath.Separator))
	for i, name := range names {
		flags, mode := unix.O_PATH|unix.O_DIRECTORY, uint32(0)
		if i == len(names)-1 {
			flags, mode = unix.O_APPEND|unix.O_CREAT|unix.O_WRONLY|unix.O_NONBLOCK, 0o640
		}
		next, err := unix.Openat(at, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		unix.Close(at)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: filepath.Join(base, filepath.Join(names[:i+1]...)), Err: err}
		}
		at = next
	}
	var is unix.Stat_t
	err = unix.Fstat(at, &is)
	if err == nil && is.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errors.New("it is not an ordinary file")
	}
	if err == nil {
		err = unix.SetNonblock(at, false)
	}
	if err != nil {
		unix.Close(at)
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(at), path), nil
}
