// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrLocked is returned by [Dir.TryLock] when another process runs the cluster.
var ErrLocked = errors.New("the cluster is running")

// Lock is the right to run, change or delete a cluster. It ends with Unlock or with the process.
type Lock struct{ file *os.File }

// TryLock takes the cluster's lock, creating its directory if there is none. It returns [ErrLocked]
// at once when another process has it.
func (d Dir) TryLock() (*Lock, error) {
	for {
		if err := os.MkdirAll(d.path, 0o700); err != nil {
			return nil, fmt.Errorf("make directory of cluster %s: %w", d.Name, err)
		}
		l, err := d.lock(os.O_CREATE, syscall.F_SETLK)
		if !errors.Is(err, fs.ErrNotExist) {
			return l, err
		}
		// The previous holder deleted it in between: make it again.
	}
}

// WaitLock takes the cluster's lock as soon as the process that holds it releases it. It cannot be interrupted:
// the caller makes sure that the other process ends. When that process deletes the cluster, or there is no
// cluster, the error is [fs.ErrNotExist].
func (d Dir) WaitLock() (*Lock, error) {
	return d.lock(0, syscall.F_SETLKW)
}

func (d Dir) lock(openFlag, command int) (*Lock, error) {
	file, err := os.OpenFile(d.lockFile(), os.O_RDWR|openFlag, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock of cluster %s: %w", d.Name, err)
	}
	err = fcntl(file, command, &syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart})
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return nil, errors.Join(ErrLocked, file.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock cluster %s: %w", d.Name, err), file.Close())
	}
	// The previous holder may have deleted the directory while we waited: a lock on a deleted file protects
	// nothing.
	if !d.isLockFile(file) {
		return nil, errors.Join(fmt.Errorf("lock cluster %s: %w", d.Name, fs.ErrNotExist), file.Close())
	}
	return &Lock{file}, nil
}

func (d Dir) isLockFile(file *os.File) bool {
	ours, err := file.Stat()
	if err != nil {
		return false
	}
	theirs, err := os.Stat(d.lockFile())
	return err == nil && os.SameFile(ours, theirs)
}

// Unlock releases the lock.
func (l *Lock) Unlock() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("unlock cluster: %w", err)
	}
	return nil
}

// Holder returns the process that runs the cluster, or 0 when it is stopped. The kernel answers, so the number
// is never stale. A process that holds the lock itself must not ask.
func (d Dir) Holder() (pid int, err error) {
	file, err := os.OpenFile(d.lockFile(), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open lock of cluster %s: %w", d.Name, err)
	}
	query := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	err = errors.Join(fcntl(file, syscall.F_GETLK, &query), file.Close())
	if err != nil {
		return 0, fmt.Errorf("ask for the holder of cluster %s: %w", d.Name, err)
	}
	if query.Type == syscall.F_UNLCK {
		return 0, nil
	}
	return int(query.Pid), nil
}

func fcntl(file *os.File, command int, lock *syscall.Flock_t) error {
	for {
		err := syscall.FcntlFlock(file.Fd(), command, lock)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
