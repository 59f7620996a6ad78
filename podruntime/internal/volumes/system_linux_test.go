// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func groupOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return int64(info.Sys().(*syscall.Stat_t).Gid)
}

func sizeOf(t *testing.T, dir string) int64 {
	t.Helper()
	var info unix.Statfs_t
	if err := unix.Statfs(dir, &info); err != nil {
		t.Fatal(err)
	}
	return int64(info.Blocks) * info.Bsize
}

func makePipe(t *testing.T, path string) {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
