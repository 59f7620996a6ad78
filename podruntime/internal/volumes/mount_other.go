// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package volumes

import (
	"errors"
	"io/fs"
	"os"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const nonBlocking = 0

// These systems have no mounts, and no reliable file system in memory.

func canMount(string) bool { return false }

func inMemory(string) bool { return false }

func isMemoryMount(string) bool { return false }

func mountMemory(string, int64) error { return errors.ErrUnsupported }

func bindMount(*os.Root, string, string, runtimeapi.MountPropagation, bool) error {
	return errors.ErrUnsupported
}

// changeOne gives a file or directory a group and another mode.
func changeOne(root *os.Root, name string, group int, mode func(fs.FileMode) fs.FileMode) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	// Change the group first: the change clears the setgid bit.
	if err := ignoreRights(root.Lchown(name, -1, group)); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil // the mode would be the target's
	}
	return root.Chmod(name, mode(info.Mode()))
}

func gidOf(fs.FileInfo) int64 { return -1 }

func isOurs(fs.FileInfo) bool { return true }

func detachBelow(string) error { return nil }

// removeTree removes name in the directory parent with its content; os.Root follows no links.
func removeTree(parent, name string) error {
	root, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.RemoveAll(name)
}
