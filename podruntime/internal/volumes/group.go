// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"io/fs"
	"os"
)

// giveTo changes the group of a directory and its content to the pod's. The group may read, and write unless the volume is read-only. New files in
// the directories get the same group. Containers of other pods may write to a PersistentVolume at the same time: see changeOne.
func giveTo(root *os.Root, name string, group *int64, readOnly bool) error {
	if group == nil {
		return nil
	}
	return fs.WalkDir(root.FS(), name, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return giveOne(root, name, *group, readOnly)
	})
}

// giveOne changes the group of one file or directory.
func giveOne(root *os.Root, name string, group int64, readOnly bool) error {
	return changeOne(root, name, int(group), func(mode fs.FileMode) fs.FileMode {
		if readOnly {
			mode |= 0o440
		} else {
			mode |= 0o660
		}
		if mode.IsDir() {
			mode |= fs.ModeSetgid | 0o110
		}
		return mode & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
	})
}

// ignoreRights ignores permission errors of a change of owner, because without root, containers cannot run as another user either.
func ignoreRights(err error) error {
	if os.Geteuid() != 0 && (errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported)) {
		return nil
	}
	return err
}

// makeDir makes a directory with this mode, independently of the umask. An existing directory is an error.
func makeDir(root *os.Root, name string, mode fs.FileMode) error {
	if err := root.Mkdir(name, 0o700); err != nil {
		return err
	}
	return root.Chmod(name, mode)
}
