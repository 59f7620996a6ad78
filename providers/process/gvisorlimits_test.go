// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func resources(memory, score int64) *runtimeapi.LinuxContainerResources {
	return &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: memory, CpuQuota: 20_000, CpuPeriod: 100_000, OomScoreAdj: score}
}

// TestGVisorShowsAContainerItsLimits checks that a container sees the limits that it has now, also if only the
// pod as a whole has limits.
func TestGVisorShowsAContainerItsLimits(t *testing.T) {
	onGVisor(t)
	w := open(t, nil)
	w.needLimits()
	id := w.run("main", func(c *runtimeapi.ContainerConfig) {
		shell(c)
		c.Linux.Resources = resources(64<<20, 0)
	}, "sleep", "600")
	reads := func(memory, quota string) {
		t.Helper()
		// The script reads the files of the unified hierarchy, or those of the older ones.
		got := w.in(id, "cd /sys/fs/cgroup; /busybox cat memory.max cpu.max memory/memory.limit_in_bytes cpu/cpu.cfs_quota_us 2>/dev/null")
		if !strings.HasPrefix(got, memory+"\n"+quota) {
			t.Errorf("got %q, want %s and %s", got, memory, quota)
		}
	}
	reads("67108864", "20000")
	if err := w.UpdateContainerResources(t.Context(), id, &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{
		MemoryLimitInBytes: 80 << 20, CpuQuota: 30_000, CpuPeriod: 100_000,
	}}); err != nil {
		t.Fatal(err)
	}
	reads("83886080", "30000")
}

// TestGVisorIsKilledWhenItsPodWouldBe checks the kernel's choice when the machine runs out of memory: the
// process of a sandbox counts as the most valuable of its containers.
func TestGVisorIsKilledWhenItsPodWouldBe(t *testing.T) {
	onGVisor(t)
	w := open(t, nil)
	// Not every machine lets a process have a lower score than its parent.
	for i, score := range []int64{900, 500, 700} {
		w.run(fmt.Sprintf("c%d", i), func(c *runtimeapi.ContainerConfig) { c.Linux.Resources = resources(0, score) }, "sleep", "600")
		want := []string{"900", "500", "500"}[i]
		w.until(fmt.Sprintf("the score %s after a container of score %d", want, score), func() bool { // the score is set concurrently with the start
			got, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", w.sandboxProcess(w.sandbox).PID))
			return err == nil && strings.TrimSpace(string(got)) == want
		})
	}
	w.run("guaranteed", func(c *runtimeapi.ContainerConfig) { c.Linux.Resources = resources(0, -997) }, "sleep", "600")
}
