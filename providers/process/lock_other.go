// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package process

import (
	"errors"
	"os"
	"syscall"
)

func lockDir(string) (*os.File, error) {
	return nil, errors.New("process provider: it is not supported on this operating system")
}

func unlockDir(f *os.File) error { return f.Close() }

func signalNumber(string) syscall.Signal { return 0 }
