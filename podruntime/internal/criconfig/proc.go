// SPDX-License-Identifier: Apache-2.0

package criconfig

import (
	"path/filepath"
	"slices"
	"sync"
)

// thermal are files that tell containers of each other's load; which there are depends on the machine.
var thermal = sync.OnceValue(func() []string {
	found, _ := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle") // only a bad pattern is an error
	return found
})

// maskedPaths are what a container must not see of the machine.
func maskedPaths() []string {
	return slices.Concat([]string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
		"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
	}, thermal())
}

// readonlyPaths are what a container must not change of the machine.
func readonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}
