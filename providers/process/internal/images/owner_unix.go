// SPDX-License-Identifier: Apache-2.0

//go:build unix

package images

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// freeBytes returns the bytes that this process may use on the disk of dir.
func freeBytes(dir string) (uint64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return uint64(stat.Bavail) * uint64(stat.Bsize), nil //nolint:gosec,unconvert // their types differ by system
}

// copyOwner sets the owner of a copied file to the owner of the original. It needs root.
func copyOwner(source, target *os.Root, name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := source.Lstat(name)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return target.Lchown(name, int(stat.Uid), int(stat.Gid))
}
