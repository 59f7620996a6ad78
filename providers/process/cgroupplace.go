// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// findCgroups finds where this process may make groups, by making one: in parent, a path in all hierarchies, or
// with "" below its own group.
func findCgroups(parent string) cgroups {
	g := cgroups{v1: map[string]string{}}
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return cgroups{why: err}
	}
	own := map[string]string{}
	_, v2 := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		if parent != "" {
			fields[2] = parent
		}
		if fields[1] == "" {
			if v2 == nil {
				g.v2 = filepath.Join(cgroupRoot, fields[2])
			}
			own["unified"] = fields[2] // with controllers in version 1, the unified hierarchy is mounted there
			continue
		}
		for name := range strings.SplitSeq(fields[1], ",") {
			own[strings.TrimPrefix(name, "name=")] = fields[2]
		}
		for _, want := range controllers {
			for name := range strings.SplitSeq(fields[1], ",") {
				if dir := filepath.Join(cgroupRoot, name, fields[2]); name == want && isWritable(dir, parent) {
					g.v1[name] = dir
				}
			}
		}
	}
	switch {
	case g.v2 != "" && parent != "":
		g.v1 = nil
		g.why = openParent(parent)
	case g.v2 != "":
		g.v1 = nil
		g.why = delegateControllers(g.v2)
	case g.v1["memory"] == "":
		g.why = errors.New("no cgroup may be made below that of the daemon")
	default:
		g.others = otherPlaces(own)
	}
	return g
}

// otherPlaces returns the directories in version 1 hierarchies in which a runtime makes unwanted groups. A
// runtime uses its one path in all hierarchies, and takes a path that does not exist as relative to the daemon's
// own group.
func otherPlaces(own map[string]string) map[string]string {
	one := own["memory"]
	for _, controller := range controllers {
		if path, ok := own[controller]; ok && path != one {
			one = ""
		}
	}
	others := map[string]string{}
	for name, path := range own {
		if slices.Contains(controllers, name) {
			continue
		}
		if _, err := os.Stat(filepath.Join(cgroupRoot, name)); err == nil {
			others[name] = filepath.Join(cgroupRoot, name, cmp.Or(one, path))
		}
	}
	return others
}

// openParent makes a version 2 group that can limit its children. The groups above must allow that.
func openParent(parent string) error {
	dir := cgroupRoot
	for part := range strings.SplitSeq("."+parent, "/") {
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) { //nolint:gosec // the mode of the kernel's own groups
			return fmt.Errorf("make the cgroup %s: %w", parent, err)
		}
		if err := enableControllers(dir); err != nil {
			return fmt.Errorf("make the cgroup %s: %w", parent, err)
		}
	}
	return nil
}

// enableControllers lets groups below a directory of version 2 limit memory, CPU and processes.
func enableControllers(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory +cpu +pids"), 0)
}

// isWritable reports whether groups can be made in a directory. It makes a named directory first.
func isWritable(dir, parent string) bool {
	if parent != "" && os.MkdirAll(dir, 0o755) != nil { //nolint:gosec // the mode of the kernel's own groups
		return false
	}
	probe, err := os.MkdirTemp(dir, cgroupPrefix+"probe-")
	return err == nil && os.Remove(probe) == nil
}

// delegateControllers allows groups below dir to limit memory and CPU. The kernel allows no process beside them, so this
// process moves aside with the supervisors of containers. Foreign processes stay, and then there are no groups:
// a daemon needs a group of its own.
func delegateControllers(dir string) error {
	if enableControllers(dir) == nil {
		return nil
	}
	aside := filepath.Join(dir, cgroupPrefix+"daemon")
	if err := os.Mkdir(aside, 0o755); err != nil && !os.IsExist(err) { //nolint:gosec // the mode of the kernel's own groups
		return fmt.Errorf("make a cgroup below that of the daemon: %w", err)
	}
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	for pid := range strings.Lines(string(procs)) {
		if pid = strings.TrimSpace(pid); !isOwn(pid) {
			return fmt.Errorf("process %s of another program is in the cgroup of the daemon, %s: run the daemon in a cgroup of its own, or set cgroupParent", pid, dir)
		}
	}
	for pid := range strings.Lines(string(procs)) {
		if err := os.WriteFile(filepath.Join(aside, "cgroup.procs"), []byte(strings.TrimSpace(pid)), 0); err != nil {
			return fmt.Errorf("move into a cgroup below that of the daemon: %w", err)
		}
	}
	return enableControllers(dir)
}

// isOwn reports whether a process is this one, or the supervisor of a container.
func isOwn(pid string) bool {
	if pid == strconv.Itoa(os.Getpid()) {
		return true
	}
	line, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
	return err != nil || strings.HasPrefix(string(line), shim.Argv0+"\x00") // the process ended meanwhile
}
