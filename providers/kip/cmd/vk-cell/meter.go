// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// meter measures the whole machine, because only one pod uses it.
type meter struct {
	mu      sync.Mutex
	at      time.Time // guarded by mu: the time of the last measurement
	seconds float64   // guarded by mu: the CPU time of all CPUs at that time
}

func newMeter() *meter { return &meter{} }

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
	m.mu.Unlock()
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return s, err
	}
	kib := map[string]uint64{}
	for lines := bufio.NewScanner(bytes.NewReader(memory)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		n, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64) // some fields are no numbers of kB
		kib[name] = n
	}
	available, used := kib["MemAvailable"]<<10, (kib["MemTotal"]-kib["MemFree"])<<10
	working := (kib["MemTotal"] << 10) - available
	s.Memory = &statsv1alpha1.MemoryStats{Time: metav1.NewTime(now), AvailableBytes: &available, UsageBytes: &used, WorkingSetBytes: &working}
	return s, m.network(&s, now)
}

// network adds the bytes that the network cards have received and sent.
func (m *meter) network(s *statsv1alpha1.PodStats, now time.Time) error {
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
