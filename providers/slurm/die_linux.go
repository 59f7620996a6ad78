// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"os"
	"os/exec"
	"syscall"
)

// dieTogether sends s to a command when this process ends, because nothing would track a submission that outlives this process.
func dieTogether(cmd *exec.Cmd, s syscall.Signal) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: s}
}

// own reports whether a file belongs to the user of this process.
func own(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
