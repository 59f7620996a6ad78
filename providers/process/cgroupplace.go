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

// findCgroups finds out where this process can create cgroups, by creating one: below parent, which is a path in
// every hierarchy, or below its own cgroup if parent is empty.
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
			own["unified"] = fields[2] // in hybrid mode, the unified hierarchy is mounted at this name
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

// otherPlaces returns the directories in the other version 1 hierarchies where a runtime creates cgroups that the
// daemon does not need. A runtime uses one path in all hierarchies, and resolves a path that does not exist
// relative to the daemon's own cgroup.
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

// openParent creates a version 2 cgroup that can limit its children, and enables the controllers in its
// ancestors.
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

// enableControllers enables the memory, CPU and pids controllers for the children of a version 2 cgroup.
func enableControllers(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory +cpu +pids"), 0)
}

// isWritable reports whether cgroups can be created in dir. It creates dir first if a parent is configured.
func isWritable(dir, parent string) bool {
	if parent != "" && os.MkdirAll(dir, 0o755) != nil { //nolint:gosec // the mode of the kernel's own groups
		return false
	}
	probe, err := os.MkdirTemp(dir, cgroupPrefix+"probe-")
	return err == nil && os.Remove(probe) == nil
}

// delegateControllers enables controllers for the children of dir. The kernel requires that dir itself has no
// processes, so the daemon and the supervisors of containers move into a child cgroup. Processes of other
// programs are not moved: with such a process in dir, delegateControllers returns an error.
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

// isOwn reports whether a process is the daemon or the supervisor of a container. A process that has ended counts
// as own.
func isOwn(pid string) bool {
	if pid == strconv.Itoa(os.Getpid()) {
		return true
	}
	line, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
	return err != nil || strings.HasPrefix(string(line), shim.Argv0+"\x00") // an error means that the process has ended
}
