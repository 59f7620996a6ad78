// SPDX-License-Identifier: Apache-2.0

package enter

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// stream connects the standard input and output of this process, a step of the job, with the job's socket. The initialization of package net would be
// too late: see the package documentation.
func stream(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("connect with the job: %w", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return fmt.Errorf("connect with the job at %s: %w", path, err)
	}
	socket := os.NewFile(uintptr(fd), path)
	go func() {
		_, _ = io.Copy(socket, os.Stdin)
		_ = unix.Shutdown(fd, unix.SHUT_WR)
	}()
	_, err = io.Copy(os.Stdout, socket)
	return err
}
