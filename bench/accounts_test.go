// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

func TestCPUTimeOfAGroupInVersion2(t *testing.T) {
	got, err := parseCPUStat("usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n")
	if err != nil || got != 1500*time.Microsecond {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := parseCPUStat("user_usec 1000\n"); err == nil {
		t.Error("a group without its time was accepted")
	}
}

// TestAccountsCountWhatHasEnded: the CPU time of a program includes its ended child processes. close kills the
// remaining processes and removes the groups.
func TestAccountsCountWhatHasEnded(t *testing.T) {
	a, err := openAccounts()
	if err != nil {
		t.Skipf("no control groups can be made here: %v", err)
	}
	closed := false
	t.Cleanup(func() {
		if !closed {
			_ = a.close()
		}
	})
	// The shell's child uses CPU time and ends, and the shell becomes the remaining process.
	cmd := exec.Command("/bin/sh", "-c", "(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done); echo done; exec sleep 600")
	if err := a.startInGroup(cmd, "one"); err != nil {
		t.Fatal(err)
	}
	says, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := says.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	used, err := a.accountOf("one").cpuTime()
	if own, _ := cpuTime(cmd.Process.Pid); err != nil || used < own+20*time.Millisecond {
		t.Errorf("the group has used %v, its process that is left %v; %v", used, own, err)
	}
	if pids, err := a.accountOf("one").findProcesses(); err != nil || !slices.Equal(pids, []int{cmd.Process.Pid}) {
		t.Errorf("got processes %v, %v; want %d", pids, err, cmd.Process.Pid)
	}
	if bytes, err := a.accountOf("one").readMemory(); err != nil || bytes < 4<<10 || bytes > 64<<20 {
		t.Errorf("got %d bytes, %v", bytes, err)
	}
	closed = true
	go func() { _ = cmd.Wait() }()
	if err := a.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(a.accountOf("").dirs[0]); !os.IsNotExist(err) {
		t.Errorf("the group is there after the end: %v", err)
	}
}
