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

// answerTime is how long a program may take to say what it is.
const answerTime = 10 * time.Second

// program is what shims are run by, and why it is not the one beside this binary.
var program = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return self(), err
	}
	return programIn(filepath.Dir(path))
})

// Program tells why shims are run by the whole binary of the daemon; nil if there is a small one beside it.
func Program() error {
	_, err := program()
	return err
}

// self is the path of this binary, also after another one took its place on disk.
func self() string { return "/proc/self/exe" }

// programIn returns the program in dir if it is of this version, else this one.
func programIn(dir string) (string, error) {
	f, err := os.Open(filepath.Join(dir, Argv0))
	if err != nil {
		return self(), err
	}
	defer f.Close()
	if build == "" {
		return self(), fmt.Errorf("%s: it is not known to be of this version, as this was built of nobody knows what: make build says it to both", f.Name())
	}
	// By this path it is the same file for ever, also when another one takes its place on disk. The number is none of those that a child
	// gets, and is never closed.
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 64)
	if err != nil {
		return self(), err
	}
	path := fmt.Sprintf("/proc/self/fd/%d", fd)
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path)
	cmd.Args = []string{Argv0, buildMode}
	out, err := cmd.Output()
	if said := strings.TrimSuffix(string(out), "\n"); err == nil && said != version() {
		err = fmt.Errorf("it was built of %q, and this of %q", said, version())
	}
	if err != nil {
		unix.Close(fd)
		return self(), fmt.Errorf("%s: %w", f.Name(), err)
	}
	return path, nil
}
