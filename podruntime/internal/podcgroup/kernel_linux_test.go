// SPDX-License-Identifier: Apache-2.0

package podcgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestKernelKeepsTheLimitsOfAPod: the kernel limits the processes of a pod in all groups below the pod's group.
// Removing the pod's group ends all of them.
func TestKernelKeepsTheLimitsOfAPod(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("cgroups need the rights of root")
	}
	in := Machine("/sys/fs/cgroup")
	tree := New(in, fmt.Sprintf("/vk-podcgroup-%d", os.Getpid()))
	if err := tree.Prepare(Limits{}); err != nil {
		t.Skipf("no cgroups can be made: %v", err)
	}
	t.Cleanup(tree.Close)
	limits := Limits{CPUShares: 512, CPUQuota: 50_000, CPUPeriod: 100_000, Memory: 64 << 20, Pids: 6}
	must(t, tree.Make(pod1, corev1.PodQOSBurstable, limits))
	t.Cleanup(func() { _ = tree.Remove(pod1) }) // also if the test has failed
	group := tree.Group(pod1, corev1.PodQOSBurstable)
	if got := tree.readLimits(group); in.Controllers["memory"] != "" && (got.Memory != limits.Memory || got.CPUQuota != limits.CPUQuota) {
		t.Errorf("the kernel has %+v, want %+v", got, limits)
	}
	pids := in.Unified
	if pids == "" {
		pids = in.Controllers["pids"]
	}
	container := filepath.Join(pids, group, "container")
	must(t, os.Mkdir(container, 0o700))
	// The number of processes is limited, in case this test fails.
	bomb := exec.CommandContext(t.Context(), "/bin/sh", "-c", `echo $$ >"$0/cgroup.procs" || exit 9; n=0; while [ $n -lt 30 ]; do sleep 30 & n=$((n+1)); done`, container)
	if err := bomb.Run(); err == nil || bomb.ProcessState.ExitCode() == 9 {
		t.Errorf("30 processes were started, or none could be: %v", err)
	}
	if n := strings.Count(content(t, container, "cgroup.procs"), "\n"); n == 0 || n > 6 {
		t.Errorf("%d processes run, want some and no more than 6", n)
	}
	if n := tree.Refused()[pod1]; n == 0 {
		t.Error("nobody counts what was refused")
	}
	begin := time.Now()
	if err := tree.Remove(pod1); err != nil {
		t.Errorf("after %v: %v", time.Since(begin), err)
	}
	for _, dir := range in.limitingDirs() {
		if _, err := os.Stat(filepath.Join(dir, group)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", filepath.Join(dir, group), err)
		}
	}
}
