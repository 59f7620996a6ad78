// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// sleeper starts a process that does nothing until it is killed. The channel ended is closed at its end.
func sleeper(t *testing.T) (pid int, ended <-chan struct{}) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // it is killed
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
	})
	return cmd.Process.Pid, done
}

// TestAnotherProcessWithTheNumberIsNotKilled checks that a process found below a supervisor is not confused with
// a later process of the same number.
func TestAnotherProcessWithTheNumberIsNotKilled(t *testing.T) {
	one, oneEnded := sleeper(t)
	other, otherEnded := sleeper(t)
	killBelow(one, other)
	if !ProcessOf(other).Alive() {
		t.Error("a process was killed that is not below the other one")
	}
	killBelow(os.Getpid(), one)
	<-oneEnded
	if killBelow(os.Getpid(), one); !ProcessOf(other).Alive() { // it has gone
		t.Error("another process was killed")
	}
	killBelow(os.Getpid(), other)
	<-otherEnded
}

// TestOnlyMembersOfAGroupAreKilled checks that a process that has left the group since it was listed is not
// killed, and that a process of another namespace, listed as 0, is skipped.
func TestOnlyMembersOfAGroupAreKilled(t *testing.T) {
	dir := t.TempDir()
	list := func(pids ...int) {
		t.Helper()
		var text string
		for _, pid := range pids {
			text += strconv.Itoa(pid) + "\n"
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in, inEnded := sleeper(t)
	out, _ := sleeper(t)
	list(0, in, os.Getpid()) // 0 is a process of another namespace, but for kill it means this process group
	if err := killSome(dir, []int{in, out}); err != nil {
		t.Fatal(err)
	}
	<-inEnded
	if !ProcessOf(out).Alive() {
		t.Error("a process was killed that is not in the group any more")
	}
	list(0, out)
	if pids, err := listMembers(dir); err != nil || len(pids) != 1 || pids[0] != out {
		t.Errorf("members: got %v, %v; want %d", pids, err, out)
	}
	if err := killMembers(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("a group that is not there: got %v", err)
	}
}
