// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU times in /proc; Linux shows user space 100 a second on every machine.
const tick = 10 * time.Millisecond

// cpuTime returns the used CPU time of a process, user and system.
func cpuTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseCPUTime(stat)
}

// cpuTimeOfAll returns the CPU time of a process and of its ended child processes.
func cpuTimeOfAll(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return sumCPUTime(stat, 14, 17)
}

// parseCPUTime reads utime and stime, the 14th and 15th field.
func parseCPUTime(stat []byte) (time.Duration, error) { return sumCPUTime(stat, 14, 15) }

// sumCPUTime adds up a range of fields. It counts the fields from the end, because the second field is the
// program's name in parentheses, which may contain anything.
func sumCPUTime(stat []byte, from, to int) (time.Duration, error) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const before = 3 // number of fields before the range, counted from 1
	if len(fields) <= to-before {
		return 0, fmt.Errorf("read CPU time: too few fields in %q", stat)
	}
	var sum time.Duration
	for i := from - before; i <= to-before; i++ {
		ticks, err := strconv.ParseInt(string(fields[i]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time: %w", err)
		}
		sum += time.Duration(ticks) * tick
	}
	return sum, nil
}

// peakMemory returns the most memory in bytes that a process has had resident.
func peakMemory(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return parsePeakMemory(string(status))
}

// residentMemory returns how much memory in bytes a process has resident.
func residentMemory(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return parseMemory(string(status), "VmRSS:")
}

// proportionalMemory returns the resident memory of a process in bytes. Shared memory is divided by the number of its
// users.
func proportionalMemory(pid int) (int64, error) {
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	if len(rollup) == 0 { // the process has ended and was not reaped yet
		return 0, nil
	}
	return parseMemory(string(rollup), "Pss:")
}

func parsePeakMemory(status string) (int64, error) { return parseMemory(status, "VmHWM:") }

func parseMemory(status, key string) (int64, error) {
	for line := range strings.Lines(status) {
		value, ok := strings.CutPrefix(line, key)
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read %s %w", key, err)
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("read %s no such line; does the process still run?", key)
}

// readLoad returns the machine's load average over the last minute, as a sign of other work on the machine.
func readLoad() (float64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	return strconv.ParseFloat(first, 64)
}
