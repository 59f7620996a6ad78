// SPDX-License-Identifier: Apache-2.0

// Package oomscore protects the daemon when memory runs out: the kernel ends almost all other processes first, as
// with a kubelet.
//
// The guarantee: processes started by the daemon have the daemon's former score. Without Restore they would
// inherit the lowered score.
//
// The surprise: the score is state of the process, not of a value of this package.
package oomscore

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
)

// daemon is the score of a kubelet.
const daemon = -999

// before is the score of this process before LowerTo, or nil if LowerTo changed nothing.
var before atomic.Pointer[string]

// Lower gives this process the score of a kubelet, if it may do that: it needs the capability SYS_RESOURCE.
// Otherwise it changes nothing.
func Lower() { LowerTo(daemon) }

// LowerTo gives this process a lower score, if the process may do that. Only the first call has an effect.
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

// Restore gives a child process the score of this process before LowerTo. The child must not have started
// processes yet.
func Restore(pid int) {
	if score := before.Load(); score != nil {
		_ = os.WriteFile(scorePath(strconv.Itoa(pid)), []byte(*score), 0) // the process has ended, or this process has given up its rights
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
