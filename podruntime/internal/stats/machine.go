// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// userHZ is the unit of CPU times in /proc, the same on all architectures of Go.
const userHZ = 100

// machine reads the values of the kernel. Missing values are nil.
type machine struct {
	proc string // the directory /proc
	root string // the directory / for files in /etc and /sys
}

// readFields returns the words of each line of a file below /proc.
func (m machine) readFields(path ...string) [][]string {
	data, err := os.ReadFile(filepath.Join(append([]string{m.proc}, path...)...))
	if err != nil {
		return nil
	}
	var lines [][]string
	in := bufio.NewScanner(bytes.NewReader(data))
	in.Buffer(nil, 1<<20) // the line of interrupts is long
	for in.Scan() {
		if words := strings.Fields(in.Text()); len(words) > 0 {
			lines = append(lines, words)
		}
	}
	return lines
}

func parseNumber(word string) uint64 {
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// cpuTime returns the CPU time since the start of the machine.
func (m machine) cpuTime(now metav1.Time) *statsv1alpha1.CPUStats {
	for _, words := range m.readFields("stat") {
		if words[0] != "cpu" || len(words) < 8 {
			continue
		}
		// user, nice, system, idle, iowait, irq, softirq: all except the two idle times.
		var ticks uint64
		for _, i := range []int{1, 2, 3, 6, 7} {
			ticks += parseNumber(words[i])
		}
		used := ticks * uint64(time.Second) / userHZ
		return &statsv1alpha1.CPUStats{Time: now, UsageCoreNanoSeconds: &used}
	}
	return nil
}

// onlineProcessors returns the number of online processors, or 0 if it is unknown.
func (m machine) onlineProcessors() int64 {
	n := int64(0)
	for _, words := range m.readFields("stat") {
		if strings.HasPrefix(words[0], "cpu") && words[0] != "cpu" {
			n++
		}
	}
	return n
}

// bootTime returns the boot time of the machine, or the given time if it is unknown.
func (m machine) bootTime(otherwise metav1.Time) metav1.Time {
	for _, words := range m.readFields("stat") {
		if words[0] == "btime" && len(words) == 2 {
			return metav1.NewTime(time.Unix(int64(parseNumber(words[1])), 0)) //nolint:gosec // seconds since 1970 fit
		}
	}
	return otherwise
}

// memoryInfo returns /proc/meminfo in bytes, or nil if it does not exist.
func (m machine) memoryInfo() map[string]uint64 {
	info := map[string]uint64{}
	for _, words := range m.readFields("meminfo") {
		if len(words) < 2 {
			continue
		}
		value := parseNumber(words[1])
		if len(words) == 3 && words[2] == "kB" {
			value *= 1024
		}
		info[strings.TrimSuffix(words[0], ":")] = value
	}
	if info["MemTotal"] == 0 {
		return nil
	}
	return info
}

// memoryUse returns the memory usage. The working set is the memory that cannot be reclaimed at once.
func (m machine) memoryUse(now metav1.Time) *statsv1alpha1.MemoryStats {
	info := m.memoryInfo()
	if info == nil {
		return nil
	}
	usage := info["MemTotal"] - info["MemFree"]
	working := usage - min(usage, info["Inactive(file)"])
	available, rss := info["MemTotal"]-working, info["AnonPages"]
	stats := &statsv1alpha1.MemoryStats{Time: now, UsageBytes: &usage, WorkingSetBytes: &working, AvailableBytes: &available, RSSBytes: &rss}
	for _, words := range m.readFields("vmstat") {
		switch value := parseNumber(words[len(words)-1]); words[0] {
		case "pgfault":
			stats.PageFaults = &value
		case "pgmajfault":
			stats.MajorPageFaults = &value
		}
	}
	return stats
}

func (m machine) swapUse(now metav1.Time) *statsv1alpha1.SwapStats {
	info := m.memoryInfo()
	if info == nil {
		return nil
	}
	free := info["SwapFree"]
	used := info["SwapTotal"] - min(free, info["SwapTotal"])
	return &statsv1alpha1.SwapStats{Time: now, SwapAvailableBytes: &free, SwapUsageBytes: &used}
}

// threadCount returns the number of threads, and its limit.
func (m machine) threadCount(now metav1.Time) *statsv1alpha1.RlimitStats {
	limit, load := m.readFields("sys", "kernel", "pid_max"), m.readFields("loadavg")
	if len(limit) == 0 || len(load) == 0 || len(load[0]) < 4 {
		return nil
	}
	_, all, _ := strings.Cut(load[0][3], "/")
	most, running := int64(parseNumber(limit[0][0])), int64(parseNumber(all)) //nolint:gosec // numbers of processes fit
	return &statsv1alpha1.RlimitStats{Time: now, MaxPID: &most, NumOfRunningProcesses: &running}
}

// networkTraffic returns the traffic of the interfaces in a process's network namespace. The default interface has the default route.
func (m machine) networkTraffic(now metav1.Time, process string) *statsv1alpha1.NetworkStats {
	stats := &statsv1alpha1.NetworkStats{Time: now}
	standard := m.defaultInterface(process)
	for _, words := range m.readFields(process, "net", "dev") {
		name, rest, found := strings.Cut(strings.Join(words, " "), ":")
		values := strings.Fields(rest)
		if !found || len(values) < 16 || isIgnored(name) {
			continue
		}
		one := statsv1alpha1.InterfaceStats{Name: name}
		for i, to := range map[int]**uint64{0: &one.RxBytes, 2: &one.RxErrors, 8: &one.TxBytes, 10: &one.TxErrors} {
			value := parseNumber(values[i])
			*to = &value
		}
		stats.Interfaces = append(stats.Interfaces, one)
		if name == standard {
			stats.InterfaceStats = one
		}
	}
	if len(stats.Interfaces) == 0 {
		return nil
	}
	return stats
}

// isIgnored reports whether all traffic of an interface also passes through another interface.
func isIgnored(name string) bool {
	return name == "lo" || strings.HasPrefix(name, "veth") || strings.HasPrefix(name, "ifb")
}

func (m machine) defaultInterface(process string) string {
	for _, words := range m.readFields(process, "net", "route") {
		if len(words) > 2 && words[1] == "00000000" {
			return words[0]
		}
	}
	return "eth0"
}

// usedOf returns a file system with the runtime's usage.
func (m machine) usedOf(u *runtimeapi.FilesystemUsage) *statsv1alpha1.FsStats {
	when := timeOf(u.GetTimestamp())
	stats := m.fileSystem(when, u.GetFsId().GetMountpoint())
	if stats == nil {
		stats = &statsv1alpha1.FsStats{Time: when}
	}
	stats.UsedBytes, stats.InodesUsed = countOf(u.GetUsedBytes()), countOf(u.GetInodesUsed())
	return stats
}

// fileSystem returns the file system of a path, or nil if it is unknown.
func (m machine) fileSystem(now metav1.Time, path string) *statsv1alpha1.FsStats {
	if path == "" {
		return nil
	}
	fs, err := statFileSystem(path)
	if err != nil {
		return nil
	}
	used, inodesUsed := fs.size-min(fs.size, fs.free), fs.inodes-min(fs.inodes, fs.inodesFree)
	return &statsv1alpha1.FsStats{
		Time: now, CapacityBytes: &fs.size, AvailableBytes: &fs.available, UsedBytes: &used,
		Inodes: &fs.inodes, InodesFree: &fs.inodesFree, InodesUsed: &inodesUsed,
	}
}

// space is the size of a file system.
type space struct{ size, free, available, inodes, inodesFree uint64 }
