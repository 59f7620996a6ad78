// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// openLast opens or makes the file at path, to append to it. It follows no link from above dir, the log
// directory of a pod, and never blocks: a pod that may write to the place of logs must not make this process
// write elsewhere.
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
