// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// TestQuickDescendants checks that the quick search for descendants finds the same processes as a search through
// all processes of the machine, also for children that another thread started.
func TestQuickDescendants(t *testing.T) {
	if !listsChildren() {
		t.Skip("this kernel does not list children")
	}
	cmd := exec.Command("sh", "-c", "exec 3<&0; sh -c 'echo ready; read line; :' <&3 & sh -c 'read line; :' <&3")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		_ = cmd.Wait() // its exit code does not matter
	}()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	var all, quick []int
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); { // the other shell may not run yet
		all, quick = Descendants(os.Getpid()), quickDescendants(os.Getpid())
		slices.Sort(all)
		slices.Sort(quick)
		if len(all) >= 3 && slices.Equal(all, quick) {
			return
		}
	}
	t.Errorf("below this process: %v, found quickly: %v", all, quick)
}
