// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// New describes a provider to write.
type New struct {
	// Module is the path of the Go module. For Python, it may be empty: then there is only the module of the contract tests.
	Module string
	// Name is the name of the provider for users.
	Name string
	// Language is go or python.
	Language string
	// Dir is the folder to write. It must be missing or empty.
	Dir string
	// Library is the source of the module of virtual-kubelet.
	Library Library
}

// Write writes the provider. After an error, no files of the provider are left.
func (n New) Write() (err error) {
	if err := errors.Join(n.checkName(), n.checkLanguage(), n.checkModule()); err != nil {
		return err
	}
	if err := n.checkDir(); err != nil {
		return err
	}
	files, err := n.makeFiles()
	if err != nil {
		return err
	}
	if err := placeFolder(n.Dir, files); err != nil {
		return fmt.Errorf("write the provider to %s: %w", n.Dir, err)
	}
	return nil
}

// placeFolder makes a folder of files completely or not at all: it writes the folder under a temporary name, and renames it.
func placeFolder(dir string, files []file) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	draft, err := os.MkdirTemp(filepath.Dir(dir), ".new-provider-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft)
	if err := writeAll(draft, files); err != nil {
		return err
	}
	// An empty folder is removed first; a folder with files stays.
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(draft, dir)
}

func writeAll(dir string, files []file) error {
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // a folder of source code is for everybody to read
		return err
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.text, f.mode); err != nil {
			return err
		}
	}
	return nil
}
