// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// kernelMounts returns the mounts of kernel file systems that every container has.
func kernelMounts(spec *shim.Spec) []specs.Mount {
	access := "ro"
	if spec.Privileged {
		access = "rw"
	}
	return []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=64k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777", "size=64m"}},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", access}},
		{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "noexec", "nodev", "relatime", access}},
	}
}

// allMounts returns the mounts of the kernel and of the pod. A mount of the pod replaces a mount of the kernel with
// the same target.
func allMounts(spec *shim.Spec) ([]specs.Mount, error) {
	var all []specs.Mount
	for _, m := range kernelMounts(spec) {
		if !slices.ContainsFunc(spec.Mounts, func(own shim.Mount) bool { return filepath.Clean(own.Target) == m.Destination }) {
			all = append(all, m)
		}
	}
	for i, m := range spec.Mounts {
		if m.Device {
			continue
		}
		m.Source = spec.Held(i)
		if err := checkTarget(m.Target, spec.Privileged); err != nil {
			return nil, err
		}
		all = append(all, bindMount(m, spec.Privileged))
	}
	// A mount hides everything below its target, so parents come first. Mounts of the same depth keep their
	// order.
	slices.SortStableFunc(all, func(a, b specs.Mount) int { return pathDepth(a.Destination) - pathDepth(b.Destination) })
	return all, nil
}

// checkTarget refuses a volume over the mounts that protect the machine from the container.
func checkTarget(target string, privileged bool) error {
	target = filepath.Clean(target)
	if target == "/proc" || strings.HasPrefix(target, "/proc/") {
		return fmt.Errorf("%s is in /proc, where nothing may be mounted", target)
	}
	if privileged {
		return nil
	}
	// The runtime uses the container's /dev/null to mask files.
	if target == "/dev" || slices.Contains(nodes, target) {
		return fmt.Errorf("%s has the devices of the container, where nothing may be mounted", target)
	}
	return nil
}

// nodes are the devices that a runtime creates in every container.
var nodes = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts", "/dev/ptmx", "/dev/console"}

func bindMount(m shim.Mount, privileged bool) specs.Mount {
	options := []string{"rbind"}
	switch {
	case m.Shared:
		options = append(options, "rshared")
	case m.Slave:
		options = append(options, "rslave")
	default:
		options = append(options, "rprivate")
	}
	switch {
	case m.ReadOnly && m.RecursiveReadOnly:
		options = append(options, "rro")
	case m.ReadOnly:
		options = append(options, "ro")
	default:
		options = append(options, "rw")
	}
	if !privileged {
		options = append(options, "nodev")
	}
	return specs.Mount{Destination: m.Target, Type: "bind", Source: m.Source, Options: options}
}

func pathDepth(path string) int {
	if path = filepath.Clean(path); path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}
