// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockDir takes the lock of dir. The process holds it as long as the returned file is open.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("process provider: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("process provider: another process uses %s: set stateDir: %w", dir, err)
	}
	return f, nil
}

// unlockDir releases the lock of lockDir. Closing the file is not enough: a forked child has it open until its
// exec.
func unlockDir(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	return errors.Join(err, f.Close())
}

// signalNumber returns the signal with the name, or 0 for an unknown name.
func signalNumber(name string) syscall.Signal { return unix.SignalNum(name) }
