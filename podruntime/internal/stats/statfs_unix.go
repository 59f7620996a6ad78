// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package stats

import "syscall"

func statFileSystem(path string) (space, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return space{}, err
	}
	block := uint64(fs.Bsize) //nolint:gosec // the type differs between systems
	return space{
		size: fs.Blocks * block, free: fs.Bfree * block, available: fs.Bavail * block, inodes: fs.Files, inodesFree: fs.Ffree,
	}, nil
}
