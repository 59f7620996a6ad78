// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// meter measures the whole machine for the pod, because only one pod uses it, and the processes of each container.
type meter struct {
	mu         sync.Mutex
	at         time.Time             // guarded by mu: the time of the last measurement
	seconds    float64               // guarded by mu: the CPU time of all CPUs at that time
	containers map[string]*container // guarded by mu; keyed by name
}

// container is the last measurement of a container.
type container struct {
	namespace string // the process namespace
	started   time.Time
	at        time.Time
	nanos     uint64 // of CPU time
}

func newMeter() *meter { return &meter{containers: map[string]*container{}} }

// recordStart records the first process of a container. The process namespace identifies all processes of the container, also those of exec.
func (m *meter) recordStart(name string, pid int) {
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		return // the container has ended
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for other, c := range m.containers {
		if c.namespace == namespace { // the kernel has used the number again
			delete(m.containers, other)
		}
	}
	m.containers[name] = &container{namespace: namespace, started: time.Now()}
}

// measureContainers returns the resource usage of the running containers. The caller holds m.mu.
func (m *meter) measureContainers(now time.Time) []statsv1alpha1.ContainerStats {
	type sum struct{ nanos, resident uint64 }
	sums := map[string]*sum{}
	for _, c := range m.containers {
		sums[c.namespace] = &sum{}
	}
	processes, _ := filepath.Glob("/proc/[0-9]*") // the pattern is correct
	for _, dir := range processes {
		namespace, err := os.Readlink(dir + "/ns/pid")
		if of := sums[namespace]; err == nil && of != nil {
			nanos, resident := readUsage(dir)
			of.nanos += nanos
			of.resident += resident
		}
	}
	var all []statsv1alpha1.ContainerStats
	for name, c := range m.containers {
		of := sums[c.namespace]
		if of.resident == 0 {
			continue // the container has ended
		}
		nanos := max(of.nanos, c.nanos) // the sum shrinks when a process of exec ends
		cpu := &statsv1alpha1.CPUStats{Time: metav1.NewTime(now), UsageCoreNanoSeconds: &nanos}
		if past := now.Sub(c.at); !c.at.IsZero() && past > 0 {
			cpu.UsageNanoCores = new(uint64(float64(nanos-c.nanos) / past.Seconds()))
		}
		c.at, c.nanos = now, nanos
		all = append(all, statsv1alpha1.ContainerStats{
			Name: name, StartTime: metav1.NewTime(c.started), CPU: cpu,
			Memory: &statsv1alpha1.MemoryStats{Time: metav1.NewTime(now), UsageBytes: &of.resident, WorkingSetBytes: &of.resident},
		})
	}
	slices.SortFunc(all, func(a, b statsv1alpha1.ContainerStats) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// readUsage returns the CPU time of a process with its ended children, and its resident memory. It returns 0 for a process that has ended.
func readUsage(dir string) (nanos, resident uint64) {
	stat, err := os.ReadFile(dir + "/stat")
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // the name before it may have any character
	if err != nil || len(f) < 22 {
		return 0, 0
	}
	for _, i := range []int{11, 12, 13, 14} { // utime, stime, cutime, cstime: fields 14 to 17 of proc(5)
		n, _ := strconv.ParseUint(f[i], 10, 64) // the kernel writes numbers
		nanos += n * uint64(time.Second/ticks)
	}
	pages, _ := strconv.ParseUint(f[21], 10, 64) // rss: field 24
	return nanos, pages * uint64(os.Getpagesize())
}

// ticks is the number of clock ticks in a second in the kernel's files for programs.
const ticks = 100

// stats returns the resource usage of the machine.
func (m *meter) stats() (s statsv1alpha1.PodStats, err error) {
	now := time.Now()
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return s, err
	}
	first, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := strings.Fields(string(first))
	if len(fields) < 8 || fields[0] != "cpu" {
		return s, fmt.Errorf("/proc/stat begins with %q", first)
	}
	var sum uint64
	for _, i := range []int{1, 2, 3, 6, 7} { // user, nice, system, irq, softirq
		n, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return s, fmt.Errorf("/proc/stat: %w", err)
		}
		sum += n
	}
	nanos := sum * uint64(time.Second/ticks)
	s.CPU = &statsv1alpha1.CPUStats{Time: metav1.NewTime(now), UsageCoreNanoSeconds: &nanos}
	m.mu.Lock()
	if past := now.Sub(m.at); !m.at.IsZero() && past > 0 {
		rate := uint64(max(0, (float64(nanos)-m.seconds*1e9)/past.Seconds()))
		s.CPU.UsageNanoCores = &rate
	}
	m.at, m.seconds = now, float64(nanos)/1e9
	s.Containers = m.measureContainers(now)
	m.mu.Unlock()
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return s, err
	}
	kib := map[string]uint64{}
	for lines := bufio.NewScanner(bytes.NewReader(memory)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		n, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64) // some fields are not in kB
		kib[name] = n
	}
	available, used := kib["MemAvailable"]<<10, (kib["MemTotal"]-kib["MemFree"])<<10
	working := (kib["MemTotal"] << 10) - available
	s.Memory = &statsv1alpha1.MemoryStats{Time: metav1.NewTime(now), AvailableBytes: &available, UsageBytes: &used, WorkingSetBytes: &working}
	return s, m.addNetwork(&s, now)
}

// addNetwork adds the bytes that the network cards have received and sent.
func (m *meter) addNetwork(s *statsv1alpha1.PodStats, now time.Time) error {
	text, err := os.ReadFile("/proc/net/dev")
	if err != nil {
		return err
	}
	s.Network = &statsv1alpha1.NetworkStats{Time: metav1.NewTime(now)}
	for line := range strings.SplitSeq(string(text), "\n") {
		name, counts, ok := strings.Cut(line, ":")
		f := strings.Fields(counts)
		if name = strings.TrimSpace(name); !ok || name == "lo" || len(f) < 9 {
			continue
		}
		in, inErr := strconv.ParseUint(f[0], 10, 64)
		out, outErr := strconv.ParseUint(f[8], 10, 64)
		if inErr != nil || outErr != nil {
			continue
		}
		i := statsv1alpha1.InterfaceStats{Name: name, RxBytes: &in, TxBytes: &out}
		if s.Network.Name == "" {
			s.Network.InterfaceStats = i
		}
		s.Network.Interfaces = append(s.Network.Interfaces, i)
	}
	return nil
}
