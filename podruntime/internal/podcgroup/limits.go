// SPDX-License-Identifier: Apache-2.0

package podcgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Range of the CPU shares of a group in version 1.
const (
	minShares = 2
	maxShares = 262_144
)

// Limits are the limits of a group.
type Limits struct {
	// CPUShares is the weight of the group under CPU contention, in the unit of version 1. 0 changes nothing.
	CPUShares int64
	// CPUQuota is the time in µs of CPUs in each CPUPeriod. 0 means no limit. Without a period, nothing changes.
	CPUQuota, CPUPeriod int64
	// Memory is in bytes, Pids in processes and threads. 0 changes nothing, and a negative value means no limit.
	Memory, Pids int64
}

// Raise raises the limits of a pod's group to the given limits, and lowers none. It runs before the limits of containers grow.
func (t *Tree) Raise(group string, to Limits) error {
	has := t.readLimits(group)
	higher := func(a, b int64) int64 {
		if a < 0 || b < 0 {
			return -1
		}
		return max(a, b)
	}
	if to.CPUQuota == 0 || has.CPUQuota < 0 {
		to.CPUQuota = 0
	} else {
		to.CPUQuota = max(to.CPUQuota, has.CPUQuota)
	}
	to.Memory = higher(to.Memory, has.Memory)
	return t.writeLimits(group, to)
}

// Set sets the limits of a pod's group.
func (t *Tree) Set(group string, to Limits) error { return t.writeLimits(group, to) }

// readLimits returns the limits of memory and CPU of a group.
func (t *Tree) readLimits(group string) Limits {
	l := Limits{Memory: -1, CPUQuota: -1}
	number := func(controller, v1, v2 string, to *int64) {
		words := strings.Fields(t.readText(group, controller, v1, v2))
		if len(words) == 0 {
			return
		}
		if n, err := strconv.ParseInt(words[0], 10, 64); err == nil && n < 1<<62 {
			*to = n
		}
	}
	number("memory", "memory.limit_in_bytes", "memory.max", &l.Memory)
	number("cpu", "cpu.cfs_quota_us", "cpu.max", &l.CPUQuota)
	return l
}

// readText returns the content of a file of a group, or "" if the file is missing.
func (t *Tree) readText(group, controller, v1, v2 string) string {
	dir, file := t.in.Unified, v2
	if dir == "" {
		dir, file = t.in.Controllers[controller], v1
	}
	if dir == "" {
		return ""
	}
	data, _ := os.ReadFile(filepath.Join(dir, group, file)) // the group may be gone
	return string(data)
}

// writeLimits writes the limits of a group. Limits without a controller are skipped.
func (t *Tree) writeLimits(group string, l Limits) error {
	var errs []error
	set := func(controller, v1, v2, one, two string) {
		dir, file, value := t.in.Unified, v2, two
		if dir == "" {
			dir, file, value = t.in.Controllers[controller], v1, one
		}
		if dir == "" {
			return
		}
		name := filepath.Join(dir, group, file)
		if _, err := os.Stat(name); err != nil {
			return
		}
		if err := os.WriteFile(name, []byte(value), 0); err != nil {
			errs = append(errs, fmt.Errorf("write %s to %s: %w", value, name, errors.Unwrap(err)))
		}
	}
	if n := l.CPUShares; n > 0 {
		n = min(max(n, minShares), maxShares)
		set("cpu", "cpu.shares", "cpu.weight", formatNumber(n), formatNumber(1+(n-minShares)*9999/(maxShares-minShares)))
	}
	if l.CPUPeriod > 0 {
		quota := l.CPUQuota
		if quota == 0 {
			quota = -1
		}
		if t.in.Unified == "" {
			set("cpu", "cpu.cfs_period_us", "", formatNumber(l.CPUPeriod), "")
		}
		set("cpu", "cpu.cfs_quota_us", "cpu.max", formatNumber(quota), formatLimit(quota)+" "+formatNumber(l.CPUPeriod))
	}
	if l.Memory != 0 {
		set("memory", "memory.limit_in_bytes", "memory.max", formatNumber(l.Memory), formatLimit(l.Memory))
	}
	if l.Pids != 0 {
		set("pids", "pids.max", "pids.max", formatLimit(l.Pids), formatLimit(l.Pids))
	}
	return errors.Join(errs...)
}

func formatNumber(n int64) string { return strconv.FormatInt(n, 10) }

func formatLimit(n int64) string {
	if n < 0 {
		return "max"
	}
	return formatNumber(n)
}
