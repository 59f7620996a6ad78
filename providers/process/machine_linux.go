// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// inMemory reports whether dir is on a file system in memory.
func inMemory(dir string) bool {
	var at unix.Statfs_t
	return unix.Statfs(dir, &at) == nil && (at.Type == unix.TMPFS_MAGIC || at.Type == unix.RAMFS_MAGIC)
}

// memoryVolume returns the properties of dir if a tmpfs is mounted there.
func memoryVolume(dir string) (volume shim.MemoryVolume, mounted bool, err error) {
	var own, parent unix.Stat_t
	var at unix.Statfs_t
	if err := errors.Join(unix.Lstat(dir, &own), unix.Lstat(filepath.Dir(dir), &parent), unix.Statfs(dir, &at)); err != nil {
		return volume, false, fmt.Errorf("look at the volume %s: %w", dir, err)
	}
	volume = shim.MemoryVolume{Dir: dir, Mode: own.Mode & 0o7777, UID: own.Uid, GID: own.Gid, Size: int64(at.Blocks) * at.Bsize} //nolint:gosec // sizes fit
	return volume, at.Type == unix.TMPFS_MAGIC && own.Dev != parent.Dev && volume.Size > 0, nil
}

// lowestOOMScore returns the lowest OOM score adjustment that this process may set. A runtime fails if it cannot
// set the given score, and some daemons that run as root lack this permission.
func lowestOOMScore() int {
	if held, err := heldCapabilities(); err == nil && held&(1<<unix.CAP_SYS_RESOURCE) != 0 {
		return -1000
	}
	own := 0
	if data, err := os.ReadFile("/proc/self/oom_score_adj"); err == nil {
		_, _ = fmt.Sscan(string(data), &own) // 0 stays unchanged
	}
	return own
}

// heldCapabilities returns the capabilities that this process can pass on.
func heldCapabilities() (uint64, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("read the capabilities of the daemon: %w", err)
	}
	return uint64(data[1].Permitted)<<32 | uint64(data[0].Permitted), nil
}

// isOurs reports whether a file belongs to the user of this process.
func isOurs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
