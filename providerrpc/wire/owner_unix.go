// SPDX-License-Identifier: Apache-2.0

//go:build unix

package wire

import (
	"io/fs"
	"syscall"
)

func ownerOf(info fs.FileInfo) (uid int, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}
