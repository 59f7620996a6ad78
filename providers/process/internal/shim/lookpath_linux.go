// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lookPath finds a command as the container sees it.
func lookPath(name string, env []string, cwd string) (string, error) {
	if name == "" {
		return "", errors.New("the command is empty")
	}
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(cwd, path)
		}
		if err := checkExecutable(path); err != nil {
			return "", fmt.Errorf("exec: %q: %w", name, err)
		}
		return path, nil
	}
	for _, e := range env {
		dirs, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(dirs) {
			path := filepath.Join(dir, name)
			if filepath.IsAbs(path) && checkExecutable(path) == nil {
				return path, nil
			}
		}
	}
	return "", absent(name)
}

// absent is the error for a command that is not on PATH, with the same text as other runtimes.
type absent string

func (a absent) Error() string {
	return fmt.Sprintf("exec: %q: executable file not found in $PATH", string(a))
}

// Is returns true for fs.ErrNotExist.
func (absent) Is(target error) bool { return target == fs.ErrNotExist }

func checkExecutable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return &os.PathError{Op: "exec", Path: path, Err: syscall.EISDIR}
	case info.Mode()&0o111 == 0:
		return &os.PathError{Op: "exec", Path: path, Err: syscall.EACCES}
	}
	return nil
}
