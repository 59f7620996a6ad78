// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/stats"
)

// settingsOf returns the settings for all containers, from the machine and the configuration.
func settingsOf(cfg Config) criconfig.Settings {
	// The node has no capacity yet: a later step sets it.
	memory := stats.Capacity(cfg.Root, stats.DefaultPods)[corev1.ResourceMemory]
	_, v2 := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	return criconfig.Settings{
		Node: cfg.Node.Name, LogRoot: cfg.LogRoot, SeccompRoot: filepath.Join(cfg.Root, "seccomp"),
		MemoryCapacity: memory.Value(), OOMScoreFloor: ownOOMScore(), SwapLimits: swapLimits(),
		CgroupV2: v2 == nil, HugePageSizes: hugePageSizes(),
	}
}

// ownOOMScore returns the score of this process: without CAP_SYS_RESOURCE, its children cannot have a lower score.
func ownOOMScore() int64 {
	raw, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return -1000
	}
	score, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil || score <= 0 {
		return -1000
	}
	return score
}

// swapLimits reports whether cgroups can limit swap.
func swapLimits() bool {
	for _, file := range []string{"/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", "/sys/fs/cgroup/init.scope/memory.swap.max"} {
		if _, err := os.Stat(file); err == nil {
			return true
		}
	}
	return false
}

// hugePageSizes returns the huge page sizes of the machine in the notation of cgroups.
func hugePageSizes() []string {
	entries, err := os.ReadDir("/sys/kernel/mm/hugepages")
	if err != nil {
		return nil
	}
	var sizes []string
	for _, e := range entries {
		kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(e.Name(), "hugepages-"), "kB"))
		switch {
		case err != nil:
		case kb >= 1<<20:
			sizes = append(sizes, strconv.Itoa(kb>>20)+"GB")
		case kb >= 1<<10:
			sizes = append(sizes, strconv.Itoa(kb>>10)+"MB")
		default:
			sizes = append(sizes, strconv.Itoa(kb)+"KB")
		}
	}
	return sizes
}
