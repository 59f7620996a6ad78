// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// TestGVisorGoesOnWithoutTheCallOfAContainer kills only the runtime command that waits for a container. The
// container then ends, but its sandbox continues.
func TestGVisorGoesOnWithoutTheCallOfAContainer(t *testing.T) {
	onGVisor(t)
	w := open(t, nil)
	id := w.run("main", nil, "sleep", "600")
	killed := 0
	for _, pid := range shim.Descendants(w.state(id).Shim.PID) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(line), "\x00run\x00") && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if s := w.ended(id); killed == 0 || s.GetExitCode() != 137 || !strings.Contains(s.GetMessage(), "of the runtime that kept the container ended") {
		t.Errorf("%d were killed: got %v", killed, s)
	}
	if !w.sandboxProcess(w.sandbox).Alive() {
		t.Error("the sandbox has ended")
	}
	if s := w.ended(w.run("next", nil, "exit", "3")); s.GetExitCode() != 3 {
		t.Errorf("the next container: got %v", s)
	}
}

// TestGVisorStartsAContainerWithAsManyMountsAsItMayHave checks that a container with the largest allowed number
// of mounts starts. A pod may have 116 volumes, besides the files that every container has.
func TestGVisorStartsAContainerWithAsManyMountsAsItMayHave(t *testing.T) {
	onGVisor(t)
	w := open(t, nil)
	dir := t.TempDir()
	mounts := func(n int) func(*runtimeapi.ContainerConfig) {
		return func(c *runtimeapi.ContainerConfig) {
			for i := range n {
				c.Mounts = append(c.Mounts, &runtimeapi.Mount{HostPath: dir, ContainerPath: fmt.Sprintf("/v%d", i)})
			}
		}
	}
	const volumes, hostsAndMessage = 116, 2
	if s := w.ended(w.run("most", mounts(volumes+hostsAndMessage), "exit", "3")); s.GetExitCode() != 3 {
		t.Errorf("got %v", s)
	}
	if _, err := w.tryRun("more", mounts(124), "exit", "3"); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "at most 124") {
		t.Errorf("with more than can be started: got %v", err)
	}
}
