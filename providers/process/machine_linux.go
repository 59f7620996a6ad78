// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// inMemory tells whether what is written to dir stays in memory.
func inMemory(dir string) bool {
	var at unix.Statfs_t
	return unix.Statfs(dir, &at) == nil && (at.Type == unix.TMPFS_MAGIC || at.Type == unix.RAMFS_MAGIC)
}

// heldCapabilities are those that this process can give away.
func heldCapabilities() (uint64, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("read the capabilities of the daemon: %w", err)
	}
	return uint64(data[1].Permitted)<<32 | uint64(data[0].Permitted), nil
}

// isOurs tells whether a file is of the user of this process.
func isOurs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
