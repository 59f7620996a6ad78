// SPDX-License-Identifier: Apache-2.0

package podjob

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestLimitsOfAContainerAsFiles: limits and CPU requests become the values of the unified hierarchy. A missing limit stays unset.
func TestLimitsOfAContainerAsFiles(t *testing.T) {
	for _, c := range []struct {
		limits *runtimeapi.LinuxContainerResources
		want   map[string]string
	}{
		{&runtimeapi.LinuxContainerResources{
			MemoryLimitInBytes: 64 << 20, MemorySwapLimitInBytes: 64 << 20, CpuQuota: 50000, CpuPeriod: 100000, CpuShares: 1024, Unified: map[string]string{"memory.oom.group": "1"},
		}, map[string]string{"memory.max": "67108864", "memory.swap.max": "0", "cpu.max": "50000 100000", "cpu.weight": "39", "memory.oom.group": "1"}},
		{&runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuShares: 2}, map[string]string{"cpu.weight": "1"}},
		{&runtimeapi.LinuxContainerResources{CpuShares: 262144}, map[string]string{"cpu.weight": "10000"}},
		{nil, map[string]string{}},
	} {
		if got := limitFiles(c.limits); !maps.Equal(got, c.want) {
			t.Errorf("%v: got %v, want %v", c.limits, got, c.want)
		}
	}
}

// TestOOMKilledContainerSaysSo: the container has the reason OOMKilled if the kernel killed one of its processes for lack of memory, but not if its
// program ended with the same code for another reason.
func TestOOMKilledContainerSaysSo(t *testing.T) {
	for events, want := range map[string]string{"low 0\noom 3\noom_kill 1\noom_group_kill 1\n": "OOMKilled", "low 0\noom 3\noom_kill 0\n": "Error", "": "Error"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "memory.events"), []byte(events), 0o600); err != nil {
			t.Fatal(err)
		}
		c := &container{config: &runtimeapi.ContainerConfig{}, started: time.Now(), finished: time.Now(), exitCode: 137, oomKilled: wasOOMKilled(dir)}
		if got := c.status().GetReason(); got != want {
			t.Errorf("%q: got %s, want %s", events, got, want)
		}
	}
	if wasOOMKilled("") || wasOOMKilled(t.TempDir()) {
		t.Error("a container without a memory limit was killed because of it")
	}
}

// TestMissingControllersAreNamed: a machine reports which limits it cannot enforce.
func TestMissingControllersAreNamed(t *testing.T) {
	root := t.TempDir()
	if got := MissingControllers(root); !slices.Equal(got, []string{"cpu", "memory", "pids"}) {
		t.Errorf("without a hierarchy: %v", got)
	}
	if err := os.WriteFile(filepath.Join(root, "cgroup.controllers"), []byte("cpuset cpu io hugetlb pids\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := MissingControllers(root); !slices.Equal(got, []string{"memory"}) {
		t.Errorf("without memory: %v", got)
	}
}
