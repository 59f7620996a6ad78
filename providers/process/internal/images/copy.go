// SPDX-License-Identifier: Apache-2.0

package images

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// CopyTree copies an unpacked image with its file attributes to a directory that does not exist yet.
func CopyTree(from, to string) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // the root of a container is open to its users
		return err
	}
	target, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer target.Close()
	var dirs []string
	err = fs.WalkDir(source.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if d.IsDir() {
			dirs = append(dirs, name)
			return target.Mkdir(name, 0o700)
		}
		return copyFile(source, target, name, d)
	})
	// Begin at the leaves: the mode of a directory may forbid writes below it.
	for i := len(dirs) - 1; i >= 0 && err == nil; i-- {
		err = copyAttributes(source, target, dirs[i])
	}
	return err
}

func copyFile(source, target *os.Root, name string, d fs.DirEntry) error {
	switch {
	case d.Type()&fs.ModeSymlink != 0:
		link, err := source.Readlink(name)
		if err != nil {
			return err
		}
		if err := target.Symlink(link, name); err != nil {
			return err
		}
		return copyOwner(source, target, name)
	case !d.Type().IsRegular():
		return nil
	}
	in, err := source.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := target.OpenFile(filepath.Clean(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return copyAttributes(source, target, name)
}

func copyAttributes(source, target *os.Root, name string) error {
	info, err := source.Lstat(name)
	if err != nil {
		return err
	}
	if err := copyOwner(source, target, name); err != nil {
		return err
	}
	if err := target.Chmod(name, info.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)); err != nil {
		return err
	}
	return target.Chtimes(name, info.ModTime(), info.ModTime())
}
