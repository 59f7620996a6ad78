// SPDX-License-Identifier: Apache-2.0

package testapi

import "golang.org/x/sys/unix"

// memoryDir is a file system in memory on most machines.
const memoryDir = "/dev/shm"

// memoryNeeded is the number of bytes written by several clusters. A container often has only 64 MiB.
const memoryNeeded = 4 << 30

// parentDir returns the directory for the data of clusters: in memory if there is room, because a disk with
// other writers may stop etcd for longer than a request may last. Otherwise it is "", the directory for
// temporary files.
func parentDir() string {
	var fs unix.Statfs_t
	if unix.Statfs(memoryDir, &fs) != nil || fs.Type != unix.TMPFS_MAGIC || fs.Bavail*uint64(fs.Bsize) < memoryNeeded || unix.Access(memoryDir, unix.W_OK) != nil {
		return ""
	}
	return memoryDir
}
