// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package images

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveTree removes dir and its content, including directories without permissions.
func RemoveTree(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // the directory is about to be removed
		}
		return nil
	})
	return os.RemoveAll(dir)
}

func syncFiles(string) error { return nil }
