// SPDX-License-Identifier: Apache-2.0

// Package oomscore protects the daemon when memory runs out: as with a kubelet, the kernel kills almost all other
// processes first.
//
// The guarantee: Restore and Run give child processes the daemon's original score. Otherwise they would inherit
// the lowered score.
//
// Note: the score is global state of the process.
package oomscore

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
)

// daemon is the OOM score adjustment of a kubelet.
const daemon = -999

// before is the score before LowerTo, or nil if LowerTo has changed nothing.
var before atomic.Pointer[string]

// Lower lowers the score of this process to a kubelet's. It does nothing without the capability SYS_RESOURCE.
func Lower() { LowerTo(daemon) }

// LowerTo lowers the score of this process, if permitted. Only the first call has an effect.
func LowerTo(score int) {
	data, err := os.ReadFile(scorePath("self"))
	if err != nil {
		return // this is not Linux
	}
	own := strings.TrimSpace(string(data))
	if n, err := strconv.Atoi(own); err != nil || n <= score {
		return
	}
	if os.WriteFile(scorePath("self"), []byte(strconv.Itoa(score)), 0) == nil {
		before.CompareAndSwap(nil, &own)
	}
}

// Restore sets the score of a child process to the score before LowerTo. The child must not have started
// processes yet.
func Restore(pid int) {
	if score := before.Load(); score != nil {
		_ = os.WriteFile(scorePath(strconv.Itoa(pid)), []byte(*score), 0) // an error means that the process has ended, or that this process lacks the permission
	}
}

// Run runs a command with the score of this process before LowerTo.
func Run(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	Restore(cmd.Process.Pid)
	return cmd.Wait()
}

func scorePath(process string) string { return "/proc/" + process + "/oom_score_adj" }
