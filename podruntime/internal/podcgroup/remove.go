// SPDX-License-Identifier: Apache-2.0

package podcgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// removeTime is the time limit for the killed processes of a group to end.
const removeTime = 2 * time.Second

// Remove removes the groups of a pod that is gone, including the groups that a runtime left in them. It kills
// remaining processes.
func (t *Tree) Remove(uid types.UID) error {
	err := t.Forget(uid)
	for _, dir := range t.parentDirs() {
		err = errors.Join(err, removeGroup(filepath.Join(dir, podPrefix+string(uid))))
	}
	if err != nil {
		return fmt.Errorf("remove the cgroup of pod %s: %w", uid, err)
	}
	return nil
}

// Close removes the tree if it has no pods. Otherwise, the tree stays for the next process.
func (t *Tree) Close() {
	for _, dir := range t.parentDirs() {
		_ = os.Remove(dir) // fails for the root of the tree, which still has groups and is removed below
	}
	for _, dir := range slices.Concat(t.in.limitingDirs(), t.in.Others) {
		_ = os.Remove(filepath.Join(dir, t.name))
	}
}

// Pods returns the pods that have a group.
func (t *Tree) Pods() []types.UID {
	var uids []types.UID
	for _, dir := range t.parentDirs() {
		entries, _ := os.ReadDir(dir) // a hierarchy may have no groups
		for _, e := range entries {
			uid, is := strings.CutPrefix(e.Name(), podPrefix)
			if is && e.IsDir() && !slices.Contains(uids, types.UID(uid)) {
				uids = append(uids, types.UID(uid))
			}
		}
	}
	return uids
}

// parentDirs returns the parent directories of the groups of pods.
func (t *Tree) parentDirs() []string {
	var dirs []string
	for _, dir := range slices.Concat(t.in.limitingDirs(), t.in.Others) {
		for _, class := range []string{"", burstable, bestEffort} {
			dirs = append(dirs, filepath.Join(dir, t.name, class))
		}
	}
	return dirs
}

// Refused returns the number of processes that each pod was refused because of a limit. The kernel counts refusals in the group of the request, or in
// the group with the limit.
func (t *Tree) Refused() map[types.UID]int64 {
	dir := t.in.Unified
	if dir == "" {
		dir = t.in.Controllers["pids"]
	}
	all := map[types.UID]int64{}
	if dir == "" {
		return all
	}
	for _, class := range []string{"", burstable, bestEffort} {
		groups, _ := filepath.Glob(filepath.Join(dir, t.name, class, podPrefix+"*")) // the pattern is well-formed
		for _, group := range groups {
			n := refusedProcesses(group)
			counted, _ := filepath.Glob(filepath.Join(group, "*", "pids.events"))
			for _, file := range counted {
				n += refusedProcesses(filepath.Dir(file))
			}
			all[types.UID(strings.TrimPrefix(filepath.Base(group), podPrefix))] = n
		}
	}
	return all
}

// refusedProcesses returns the number of refused processes of one group.
func refusedProcesses(group string) int64 {
	data, _ := os.ReadFile(filepath.Join(group, "pids.events")) // the container may be gone
	for line := range strings.Lines(string(data)) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), "max "); is {
			n, _ := strconv.ParseInt(value, 10, 64) // the kernel writes a number
			return n
		}
	}
	return 0
}

// removeGroup removes a group and the groups below it.
func removeGroup(group string) error {
	var groups []string
	for deadline := time.Now().Add(removeTime); ; <-time.After(10 * time.Millisecond) {
		groups = groups[:0]
		err := filepath.WalkDir(group, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				groups = append(groups, path)
			}
			return nil //nolint:nilerr // a missing group need not be removed
		})
		if err != nil || len(groups) == 0 {
			return err
		}
		slices.Reverse(groups) // the deepest first
		var failed error
		for _, dir := range groups {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = errors.Join(failed, err)
				killGroup(dir)
			}
		}
		if failed == nil || time.Now().After(deadline) {
			return failed
		}
	}
}

// killGroup kills the processes of a group.
func killGroup(dir string) {
	_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0) // older kernels have none
	data, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))          // the group may be gone
	for line := range bytes.Lines(data) {
		pid, err := strconv.Atoi(string(bytes.TrimSpace(line)))
		if err != nil || pid <= 0 || pid == os.Getpid() {
			continue
		}
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // the process may have ended
		}
	}
}
