// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// cgroups makes the control groups of containers below the daemon's group.
type cgroups struct {
	// v2 is the directory in the unified hierarchy; v1 are the directories of the controllers in the older
	// hierarchies.
	v2 string
	v1 map[string]string
	// others are the directories of other hierarchies, where a runtime creates cgroups without limits.
	others map[string]string
	why    error
}

const (
	cgroupRoot   = "/sys/fs/cgroup"
	cgroupPrefix = "vk-"
)

// controllers limit or measure a container.
var controllers = []string{"memory", "cpu", "cpuacct", "pids"}

func (g *cgroups) isUsable() bool { return g.why == nil }

// groupsBelow returns the cgroups below the cgroup of a pod, or g if pod is empty.
func (g *cgroups) groupsBelow(pod string) *cgroups {
	below := *g
	if g.v2 != "" {
		below.v2 = filepath.Join(g.v2, pod)
	}
	below.v1 = map[string]string{}
	for controller, dir := range g.v1 {
		below.v1[controller] = filepath.Join(dir, pod)
	}
	return &below
}

// parentDirs returns the parent directories of the pods' cgroups, or nil without cgroups.
func (g *cgroups) parentDirs() map[string]string {
	switch {
	case !g.isUsable():
		return nil
	case g.v2 != "":
		return map[string]string{"": g.v2}
	}
	all := maps.Clone(g.others)
	maps.Copy(all, g.v1)
	return all
}

// findGroup returns the group of a container of an unknown pod.
func (g *cgroups) findGroup(id string) shim.Cgroup {
	for _, pattern := range []string{"pods-*/pod*", "pods-*/*/pod*"} {
		for _, dir := range g.groupOf("").Dirs() {
			found, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), pattern, cgroupPrefix+id)) // the pattern is well-formed
			if len(found) == 0 {
				continue
			}
			if pod, err := filepath.Rel(filepath.Dir(dir), filepath.Dir(found[0])); err == nil {
				return g.groupsBelow(pod).groupOf(id)
			}
		}
	}
	return g.groupOf(id)
}

// groupOf returns the cgroup of a container, which may not exist, or the zero value if no cgroup can be created.
func (g *cgroups) groupOf(id string) shim.Cgroup {
	group := shim.Cgroup{}
	if !g.isUsable() {
		return group
	}
	name := cgroupPrefix + id
	if g.v2 != "" {
		group.V2 = filepath.Join(g.v2, name)
		return group
	}
	group.V1 = map[string]string{}
	for controller, dir := range g.v1 {
		group.V1[controller] = filepath.Join(dir, name)
	}
	return group
}

// makeGroup makes the group of a container with its limits.
func (g *cgroups) makeGroup(id string, limits *runtimeapi.LinuxContainerResources) (shim.Cgroup, error) {
	made := g.groupOf(id)
	for _, dir := range made.Dirs() {
		if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) { //nolint:gosec // the mode of the kernel's own groups
			return made, errors.Join(err, made.Remove())
		}
	}
	if err := g.updateLimits(made, limits); err != nil {
		return made, errors.Join(err, made.Remove())
	}
	return made, nil
}

// updateLimits changes the limits of a cgroup. A limit of 0 stays unchanged.
func (g *cgroups) updateLimits(group shim.Cgroup, limits *runtimeapi.LinuxContainerResources) error {
	var errs []error
	set := func(dir, file, value string) {
		if dir == "" {
			return
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
			errs = append(errs, err)
		}
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	if n := limits.GetMemoryLimitInBytes(); n != 0 {
		set(group.V1["memory"], "memory.limit_in_bytes", number(n))
		set(group.V2, "memory.max", formatLimit(n))
	}
	if n := limits.GetCpuShares(); n > 0 {
		set(group.V1["cpu"], "cpu.shares", number(n))
		set(group.V2, "cpu.weight", number(min(max(1+(n-2)*9999/262142, 1), 10000)))
	}
	if quota := limits.GetCpuQuota(); quota != 0 {
		period := max(limits.GetCpuPeriod(), 1000)
		set(group.V1["cpu"], "cpu.cfs_period_us", number(period))
		set(group.V1["cpu"], "cpu.cfs_quota_us", number(quota))
		set(group.V2, "cpu.max", formatLimit(quota)+" "+number(period))
	}
	return errors.Join(errs...)
}

func formatLimit(n int64) string {
	if n < 0 {
		return "max"
	}
	return strconv.FormatInt(n, 10)
}
