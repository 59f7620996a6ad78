// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// usage is the current resource usage of a container.
type usage struct{ cpuNanos, memory, workingSet, rss uint64 }

// ContainerStats returns the resource usage of a container.
func (r *Runtime) ContainerStats(ctx context.Context, id string) (*runtimeapi.ContainerStats, error) {
	c, err := r.runningContainer(id)
	if err != nil {
		return nil, err
	}
	stats, err := r.statsOf(ctx, c)
	if err != nil {
		return nil, err
	}
	return stats, nil
}

const (
	// measureTime limits the measurement of all containers. A sandbox that does not answer must not delay the
	// figures of the others, because eviction needs them.
	measureTime = 10 * time.Second
	// measuredAtOnce is the number of containers that are measured at the same time.
	measuredAtOnce = 8
)

// ListContainerStats returns the CPU time and memory of each running container. A container that cannot be
// measured is in the list without figures.
func (r *Runtime) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	bounded, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	all := r.containersOf(filter.GetPodSandboxId())
	found := make([]*runtimeapi.ContainerStats, len(all))
	var group errgroup.Group
	group.SetLimit(measuredAtOnce)
	for i, c := range all {
		if filter.GetId() != "" && filter.GetId() != c.id || !matchesLabels(c.config.GetLabels(), filter.GetLabelSelector()) {
			continue
		}
		group.Go(func() error {
			if _, err := r.runningContainer(c.id); err != nil {
				return nil // the container has ended
			}
			stats, err := r.statsOf(bounded, c)
			if err != nil && ctx.Err() == nil {
				if _, ended := r.runningContainer(c.id); ended != nil {
					return nil // the container ended during the measurement
				}
				log.G(ctx).WithError(err).Warn("process provider: a container cannot be measured; the others are")
			}
			found[i] = stats
			return nil
		})
	}
	_ = group.Wait() // the functions return no errors
	return slices.DeleteFunc(found, func(s *runtimeapi.ContainerStats) bool { return s == nil }), ctx.Err()
}

// statsOf measures a container. An error may come with partial figures.
func (r *Runtime) statsOf(ctx context.Context, c *container) (*runtimeapi.ContainerStats, error) {
	state, err := c.readState()
	if err != nil {
		return nil, err
	}
	now := time.Now().UnixNano()
	number := func(n uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: n} }
	layer := r.layers.layerUse(c)
	if !r.isContained() {
		layer.at = time.Unix(0, now) // the container has no layer
	}
	stats := &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{Id: c.id, Metadata: c.config.GetMetadata(), Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations()},
		WritableLayer: &runtimeapi.FilesystemUsage{
			Timestamp: layer.at.UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: r.config.StateDir},
			UsedBytes: number(uint64(layer.bytes)), InodesUsed: number(uint64(layer.inodes)), //nolint:gosec // sizes of files fit
		},
	}
	u := measureGroup(c.Spec.Cgroup, state)
	if r.oci.isGVisor() {
		if u, err = r.measureGuest(ctx, c); err != nil {
			return stats, err
		}
	}
	stats.Cpu = &runtimeapi.CpuUsage{Timestamp: now, UsageCoreNanoSeconds: number(u.cpuNanos)}
	stats.Memory = &runtimeapi.MemoryUsage{Timestamp: now, UsageBytes: number(u.memory), WorkingSetBytes: number(u.workingSet), RssBytes: number(u.rss)}
	return stats, nil
}

// ListPodSandboxStats returns the numbers of processes and threads of pods with a cgroup. Their other figures
// are the sums of their containers.
func (r *Runtime) ListPodSandboxStats(_ context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	r.mu.Lock()
	all := slices.Collect(maps.Values(r.sandboxes))
	r.mu.Unlock()
	var list []*runtimeapi.PodSandboxStats
	for _, s := range all {
		parent := s.config.GetLinux().GetCgroupParent()
		if parent == "" || filter.GetId() != "" && filter.GetId() != s.id || !matchesLabels(s.config.GetLabels(), filter.GetLabelSelector()) {
			continue
		}
		group := r.cgroups.groupsBelow(parent)
		dir := cmp.Or(group.v2, group.v1["pids"])
		if _, err := os.Stat(filepath.Join(dir, "pids.current")); err != nil {
			continue // the pod is ending, or no controller counts its usage
		}
		list = append(list, &runtimeapi.PodSandboxStats{
			Attributes: &runtimeapi.PodSandboxAttributes{Id: s.id, Metadata: s.config.GetMetadata(), Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations()},
			Linux: &runtimeapi.LinuxPodSandboxStats{Process: &runtimeapi.ProcessUsage{
				Timestamp: time.Now().UnixNano(), ProcessCount: &runtimeapi.UInt64Value{Value: readNumber(filepath.Join(dir, "pids.current"))},
			}},
		})
	}
	return list, nil
}

// measureGroup reads the usage of the cgroup, or adds up the usage of the processes if there is no cgroup.
func measureGroup(group shim.Cgroup, state shim.State) usage {
	switch {
	case group.V2 != "":
		u := usage{cpuNanos: readField(filepath.Join(group.V2, "cpu.stat"), "usage_usec") * 1000, memory: readNumber(filepath.Join(group.V2, "memory.current"))}
		return u.withMemoryStat(filepath.Join(group.V2, "memory.stat"), "inactive_file", "anon")
	case group.V1["memory"] != "" && group.V1["cpuacct"] != "":
		u := usage{cpuNanos: readNumber(filepath.Join(group.V1["cpuacct"], "cpuacct.usage")), memory: readNumber(filepath.Join(group.V1["memory"], "memory.usage_in_bytes"))}
		return u.withMemoryStat(filepath.Join(group.V1["memory"], "memory.stat"), "total_inactive_file", "total_rss")
	}
	var u usage
	for _, pid := range shim.Descendants(state.Shim.PID) {
		u.addProcess(pid)
	}
	u.memory, u.workingSet = u.rss, u.rss
	return u
}

// withMemoryStat sets the values from memory.stat.
func (u usage) withMemoryStat(file, inactive, rss string) usage {
	u.rss = readField(file, rss)
	u.workingSet = u.memory - min(u.memory, readField(file, inactive))
	return u
}

// clockTicks is the number of CPU time units per second in /proc.
const clockTicks = 100

func (u *usage) addProcess(pid int) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 22 {
		return
	}
	value := func(i int) uint64 { n, _ := strconv.ParseUint(fields[i], 10, 64); return n }
	u.cpuNanos += (value(11) + value(12)) * uint64(time.Second) / clockTicks
	u.rss += value(21) * uint64(os.Getpagesize())
}

func readNumber(path string) uint64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	return n
}

func readField(path, name string) uint64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}
