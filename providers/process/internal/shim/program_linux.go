// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// answerTime is the timeout for the version of a program.
const answerTime = 10 * time.Second

// program returns the path of the program for shims, and the reason if it is not the small program in the
// directory of this binary.
var program = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return ownPath(), err
	}
	return programIn(filepath.Dir(path))
})

// Program returns the reason why shims run the daemon's own binary, or nil if they run the small program in its
// directory.
func Program() error {
	_, err := program()
	return err
}

// ownPath returns a path of this binary that stays valid after the file on disk was replaced.
func ownPath() string { return "/proc/self/exe" }

// programIn returns the program in dir if it has this version, or else this program with an error.
func programIn(dir string) (string, error) {
	f, err := os.Open(filepath.Join(dir, Argv0))
	if err != nil {
		return ownPath(), err
	}
	defer f.Close()
	if build == "" {
		return ownPath(), fmt.Errorf("cannot verify the version of %s: this binary has no build stamp; build both with make build", f.Name())
	}
	// Use a path that stays valid after the file on disk was replaced. The descriptor is never closed, and no
	// child uses its number.
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 64)
	if err != nil {
		return ownPath(), err
	}
	path := fmt.Sprintf("/proc/self/fd/%d", fd)
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path)
	cmd.Args = []string{Argv0, buildMode}
	out, err := cmd.Output()
	if said := strings.TrimSuffix(string(out), "\n"); err == nil && said != protocolVersion() {
		err = fmt.Errorf("it was built of %q, and this of %q", said, protocolVersion())
	}
	if err != nil {
		unix.Close(fd)
		return ownPath(), fmt.Errorf("%s: %w", f.Name(), err)
	}
	return path, nil
}
