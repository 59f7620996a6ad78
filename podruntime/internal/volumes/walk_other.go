// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package volumes

import (
	"context"
	"io/fs"
	"os"
)

// measureDir counts the files below a directory. Vanished files do not count, and links are not followed. If the count is incomplete, AtLeast is set,
// and the error has the reason.
func measureDir(ctx context.Context, dir string) (Use, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Use{}, err
	}
	defer root.Close()
	var use Use
	err = fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		info, statErr := root.Lstat(name)
		if err != nil || statErr != nil {
			return nil //nolint:nilerr // the directory vanished, or only its containers may read it
		}
		use.Bytes += info.Size()
		use.Inodes++
		return nil
	})
	use.AtLeast = err != nil
	return use, err
}
