// SPDX-License-Identifier: Apache-2.0

//go:build unix

package nodeutil

import (
	"math"
	"syscall"
)

// maxOpenFiles returns the limit of open files of the process, or 0 if the limit is unknown.
func maxOpenFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)) //nolint:unconvert // signed on some systems
}
