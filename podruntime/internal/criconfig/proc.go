// SPDX-License-Identifier: Apache-2.0

package criconfig

import (
	"path/filepath"
	"slices"
	"sync"
)

// thermal are files that reveal the load of other containers. Their existence depends on the machine.
var thermal = sync.OnceValue(func() []string {
	found, _ := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle") // only a bad pattern is an error
	return found
})

// maskedPaths returns the paths of the machine to hide from a container.
func maskedPaths() []string {
	return slices.Concat([]string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
		"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
	}, thermal())
}

// readonlyPaths returns the read-only paths of the machine in a container.
func readonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}
