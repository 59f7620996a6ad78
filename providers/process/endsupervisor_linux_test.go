// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/durable"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// TestTheEndOfASandboxIsThatOfItsSupervisor checks that the supervisor in the state file is ended even if it does
// not answer, but not another process that has reused its PID.
func TestTheEndOfASandboxIsThatOfItsSupervisor(t *testing.T) {
	for name, c := range map[string]struct {
		later uint64 // how much later the process in the state has started
		ends  bool
	}{"it": {0, true}, "another with its number": {1, false}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command("sleep", "600")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				_ = cmd.Wait() // it is killed
				close(ended)
			}()
			defer cmd.Process.Kill() //nolint:errcheck // it has usually ended
			supervisor := shim.ProcessOf(cmd.Process.Pid)
			supervisor.Start += c.later
			if err := durable.WriteJSON(filepath.Join(dir, "state.json"), shim.State{Shim: supervisor, StartedAt: time.Now()}); err != nil {
				t.Fatal(err)
			}
			if err := endSupervisor(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			if !c.ends {
				if !shim.ProcessOf(cmd.Process.Pid).Alive() {
					t.Error("a process that is none of ours was ended")
				}
				return
			}
			select {
			case <-ended:
			case <-time.After(30 * time.Second):
				t.Error("the supervisor goes on")
			}
		})
	}
}
