// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// cgroups makes the control groups of containers below that of the daemon.
type cgroups struct {
	// v2 is the directory in the unified hierarchy, v1 are those of the controllers in the older ones.
	v2  string
	v1  map[string]string
	why error
}

const (
	cgroupRoot   = "/sys/fs/cgroup"
	cgroupPrefix = "vk-"
)

// controllers are those that limit or measure a container.
var controllers = []string{"memory", "cpu", "cpuacct", "pids"}

func (g *cgroups) usable() bool { return g.why == nil }

// findCgroups finds where this process may make groups, by making one.
func findCgroups() cgroups {
	g := cgroups{v1: map[string]string{}}
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return cgroups{why: err}
	}
	_, v2 := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		if fields[1] == "" {
			if v2 == nil {
				g.v2 = filepath.Join(cgroupRoot, fields[2])
			}
			continue
		}
		for _, want := range controllers {
			for name := range strings.SplitSeq(fields[1], ",") {
				if dir := filepath.Join(cgroupRoot, name, fields[2]); name == want && writable(dir) {
					g.v1[name] = dir
				}
			}
		}
	}
	if g.v2 != "" {
		g.v1 = nil
		g.why = delegate(g.v2)
	} else if g.v1["memory"] == "" {
		g.why = errors.New("no cgroup may be made below that of the daemon")
	}
	return g
}

func writable(dir string) bool {
	probe, err := os.MkdirTemp(dir, cgroupPrefix+"probe-")
	return err == nil && os.Remove(probe) == nil
}

// delegate lets groups below dir limit memory and CPU. The kernel wants no process beside them, so
// those of the daemon move aside.
func delegate(dir string) error {
	enable := func() error {
		return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory +cpu +pids"), 0)
	}
	if enable() == nil {
		return nil
	}
	aside := filepath.Join(dir, cgroupPrefix+"daemon")
	if err := os.Mkdir(aside, 0o755); err != nil && !os.IsExist(err) { //nolint:gosec // as the kernel makes them
		return fmt.Errorf("make a cgroup below that of the daemon: %w", err)
	}
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	for pid := range strings.Lines(string(procs)) {
		if err := os.WriteFile(filepath.Join(aside, "cgroup.procs"), []byte(strings.TrimSpace(pid)), 0); err != nil {
			return fmt.Errorf("move into a cgroup below that of the daemon: %w", err)
		}
	}
	return enable()
}

// make makes the group of a container with its limits.
func (g *cgroups) make(id string, limits *runtimeapi.LinuxContainerResources) (shim.Cgroup, error) {
	made := shim.Cgroup{}
	if !g.usable() {
		return made, nil
	}
	name := cgroupPrefix + id
	if g.v2 != "" {
		made.V2 = filepath.Join(g.v2, name)
	} else {
		made.V1 = map[string]string{}
		for controller, dir := range g.v1 {
			made.V1[controller] = filepath.Join(dir, name)
		}
	}
	for _, dir := range made.Dirs() {
		if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) { //nolint:gosec // as the kernel makes them
			return made, errors.Join(err, made.Remove())
		}
	}
	if err := g.update(made, limits); err != nil {
		return made, errors.Join(err, made.Remove())
	}
	return made, nil
}

// update writes limits. Those that are 0 are left as they are.
func (g *cgroups) update(group shim.Cgroup, limits *runtimeapi.LinuxContainerResources) error {
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
		set(group.V2, "memory.max", unlimited(n))
	}
	if n := limits.GetCpuShares(); n > 0 {
		set(group.V1["cpu"], "cpu.shares", number(n))
		set(group.V2, "cpu.weight", number(min(max(1+(n-2)*9999/262142, 1), 10000)))
	}
	if quota := limits.GetCpuQuota(); quota != 0 {
		period := max(limits.GetCpuPeriod(), 1000)
		set(group.V1["cpu"], "cpu.cfs_period_us", number(period))
		set(group.V1["cpu"], "cpu.cfs_quota_us", number(quota))
		set(group.V2, "cpu.max", unlimited(quota)+" "+number(period))
	}
	return errors.Join(errs...)
}

func unlimited(n int64) string {
	if n < 0 {
		return "max"
	}
	return strconv.FormatInt(n, 10)
}
