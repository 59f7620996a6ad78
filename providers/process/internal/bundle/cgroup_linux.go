// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// cgroupRoot is the directory of the mounted control group hierarchies.
const cgroupRoot = "/sys/fs/cgroup"

// groupOf returns the cgroup path of a container for the runtime.
func groupOf(g shim.Cgroup) (string, error) {
	if g.V2 != "" {
		return hierarchyPath("", g.V2)
	}
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	return pathV1(g.V1, groupsOf(string(data)))
}

// groupsOf returns the version 1 cgroups of a process, by controller.
func groupsOf(proc string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(proc) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		for controller := range strings.SplitSeq(fields[1], ",") {
			all[controller] = fields[2]
		}
	}
	return all
}

// pathV1 returns the one path that leads to the cgroup in every hierarchy. It is absolute, or relative to the
// cgroup of the daemon (and so of the runtime), because the daemon may be in a different cgroup in each
// hierarchy.
func pathV1(dirs, own map[string]string) (string, error) {
	inAll, below := "", ""
	for controller, dir := range dirs {
		path, err := hierarchyPath(controller, dir)
		if err != nil {
			return "", err
		}
		rel, err := filepath.Rel(own[controller], path)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			rel = outside
		}
		if inAll == "" {
			inAll, below = path, rel
		}
		if path != inAll {
			inAll = outside
		}
		if rel != below {
			below = outside
		}
	}
	switch {
	case len(dirs) == 0:
		return "", errors.New("the container has no control group")
	case inAll != outside:
		return inAll, nil
	case below != outside:
		return below, nil
	}
	return "", fmt.Errorf("the control groups of the container have no common path: %v", dirs)
}

// outside marks a missing path; no path contains it.
const outside = "\x00"

// hierarchyPath returns the path of a directory in its hierarchy.
func hierarchyPath(controller, dir string) (string, error) {
	rel, err := filepath.Rel(filepath.Join(cgroupRoot, controller), dir)
	if err != nil {
		return "", fmt.Errorf("find the control group %s: %w", dir, err)
	}
	return "/" + rel, nil
}
