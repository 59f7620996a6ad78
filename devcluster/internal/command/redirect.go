// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/controlplane"
)

// redirectLog sends the components' log to a file, together with their other output to standard error: some of
// their libraries can write nowhere else. A crash is still shown on the original standard error of the process,
// and restore brings that back.
func redirectLog(path string, verbosity int) (restore func(), err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := controlplane.LogTo(file, verbosity); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	stderr := int(os.Stderr.Fd())
	original, err := unix.Dup(stderr)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keep standard error: %w", err), file.Close())
	}
	terminal := os.NewFile(uintptr(original), "stderr")
	if err := debug.SetCrashOutput(terminal, debug.CrashOptions{}); err != nil {
		return nil, errors.Join(fmt.Errorf("set crash output: %w", err), terminal.Close(), file.Close())
	}
	if err := unix.Dup2(int(file.Fd()), stderr); err != nil {
		return nil, errors.Join(fmt.Errorf("redirect standard error: %w", err), terminal.Close(), file.Close())
	}
	// Restore at the end of the process: a failure can no longer be reported.
	return func() { _ = unix.Dup2(int(terminal.Fd()), stderr) }, nil
}
