// SPDX-License-Identifier: Apache-2.0

package podcgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Hierarchies are directories in hierarchies of cgroups.
type Hierarchies struct {
	// Unified is a directory in the version 2 hierarchy; "" if the controllers are in version 1 hierarchies.
	Unified string
	// Controllers are in hierarchies of version 1, by controller: cpu, memory and pids.
	Controllers map[string]string
	// Others are in hierarchies without limits for pods. A runtime may still make groups there.
	Others []string
}

// Machine returns the hierarchies that are mounted at root, such as /sys/fs/cgroup.
func Machine(root string) Hierarchies {
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return Hierarchies{Unified: root}
	}
	h := Hierarchies{Controllers: map[string]string{}}
	entries, _ := os.ReadDir(root) // none: there are no cgroups
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		switch _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); {
		case err != nil:
		case e.Name() == "cpu" || e.Name() == "memory" || e.Name() == "pids":
			h.Controllers[e.Name()] = dir
		default:
			h.Others = append(h.Others, dir)
		}
	}
	return h
}

// At returns the hierarchies of these directories by controller, with "" for the unified one.
func At(dirs map[string]string) Hierarchies {
	h := Hierarchies{Unified: dirs[""], Controllers: map[string]string{}}
	for controller, dir := range dirs {
		switch controller {
		case "":
		case "cpu", "cpuacct", "memory", "pids":
			h.Controllers[controller] = dir
		default:
			h.Others = append(h.Others, dir)
		}
	}
	return h
}

// limitingDirs returns the directories in which groups are made.
func (h Hierarchies) limitingDirs() []string {
	if h.Unified != "" {
		return []string{h.Unified}
	}
	var dirs []string
	for _, dir := range h.Controllers {
		dirs = append(dirs, dir)
	}
	return dirs
}

// Groups of the QoS classes. Pods of the class Guaranteed are in neither.
const (
	burstable  = "burstable"
	bestEffort = "besteffort"
	podPrefix  = "pod"
)

// Tree has the cgroups of the pods of a node. It is safe for concurrent use.
type Tree struct {
	in   Hierarchies
	name string

	mu sync.Mutex
	// guarded by mu: the CPU shares of Burstable pods; the group of the class has their sum
	shares map[types.UID]int64
	given  int64
}

// New returns the tree of that name, a path below the directories of the hierarchies. It makes no group.
func New(in Hierarchies, name string) *Tree {
	return &Tree{in: in, name: path.Join("/", name), shares: map[types.UID]int64{}}
}

// Prepare makes the tree with the limits of all pods together. The error names the directory in which no group can be made.
func (t *Tree) Prepare(all Limits) error {
	if len(t.in.limitingDirs()) == 0 {
		return errors.New("there are no cgroups")
	}
	for _, group := range []string{t.name, path.Join(t.name, burstable), path.Join(t.name, bestEffort)} {
		if err := t.makeGroup(group); err != nil {
			return fmt.Errorf("make the cgroup %s: %w", group, err)
		}
	}
	return errors.Join(t.writeLimits(t.name, all), t.writeLimits(path.Join(t.name, bestEffort), Limits{CPUShares: minShares}))
}

// Group returns the group of a pod in the format for runtimes.
func (t *Tree) Group(uid types.UID, class corev1.PodQOSClass) string {
	switch class {
	case corev1.PodQOSBurstable:
		return path.Join(t.name, burstable, podPrefix+string(uid))
	case corev1.PodQOSBestEffort:
		return path.Join(t.name, bestEffort, podPrefix+string(uid))
	}
	return path.Join(t.name, podPrefix+string(uid))
}

// Make makes the group of a pod, or sets the limits of an existing group.
func (t *Tree) Make(uid types.UID, class corev1.PodQOSClass, limits Limits) error {
	group := t.Group(uid, class)
	err := t.makeGroup(group)
	if err == nil {
		err = t.writeLimits(group, limits)
	}
	if err == nil {
		err = t.Know(uid, class, limits)
	}
	if err != nil {
		return fmt.Errorf("make the cgroup of the pod: %w", err)
	}
	return nil
}

// Restore makes the group of a pod again if it is missing, as after a reboot. An existing group stays unchanged.
func (t *Tree) Restore(uid types.UID, class corev1.PodQOSClass, limits Limits) error {
	for _, dir := range t.in.limitingDirs() {
		if _, err := os.Stat(filepath.Join(dir, t.Group(uid, class))); err != nil {
			return t.Make(uid, class, limits)
		}
	}
	return nil
}

// Know counts the CPU shares of a pod, including a pod of an earlier process, because the group of the class has the sum of the shares.
func (t *Tree) Know(uid types.UID, class corev1.PodQOSClass, limits Limits) error {
	if class != corev1.PodQOSBurstable {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shares[uid] = limits.CPUShares
	return t.shareCPU()
}

// Forget removes the CPU shares of a pod from the sum.
func (t *Tree) Forget(uid types.UID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.shares, uid)
	return t.shareCPU()
}

// shareCPU sets the CPU shares of the group burstable. The caller holds mu.
func (t *Tree) shareCPU() error {
	sum := int64(0)
	for _, one := range t.shares {
		sum += one
	}
	sum = min(max(sum, minShares), maxShares)
	if sum == t.given {
		return nil
	}
	err := t.writeLimits(path.Join(t.name, burstable), Limits{CPUShares: sum})
	if err == nil {
		t.given = sum
	}
	return err
}

// makeGroup makes a group and its parents. In version 2 each parent must allow limits below it.
func (t *Tree) makeGroup(group string) error {
	for _, dir := range t.in.limitingDirs() {
		enableControllers(dir)
		for part := range strings.SplitSeq(strings.Trim(group, "/"), "/") {
			dir = filepath.Join(dir, part)
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // the mode of the kernel's own groups
				return err
			}
			enableControllers(dir)
		}
	}
	return nil
}

// enableControllers turns on the controllers for the groups below a version 2 directory, one by one. It ignores missing controllers.
func enableControllers(dir string) {
	file := filepath.Join(dir, "cgroup.subtree_control")
	if _, err := os.Stat(file); err != nil {
		return // version 1
	}
	for _, controller := range []string{"+cpu", "+memory", "+pids"} {
		_ = os.WriteFile(file, []byte(controller), 0) // a failure shows when a limit is written
	}
}
