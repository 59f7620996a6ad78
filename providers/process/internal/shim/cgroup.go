// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shim

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// joinOwnGroups moves this thread into the version 1 cgroups, which its children inherit. For version 2, it
// returns the directory of the cgroup, in which the caller starts the child.
func (g Cgroup) joinOwnGroups() (*os.File, error) {
	for _, dir := range g.V1 {
		if err := os.WriteFile(filepath.Join(dir, "tasks"), []byte("0"), 0); err != nil {
			return nil, fmt.Errorf("enter the cgroup: %w", err)
		}
	}
	if g.V2 == "" {
		return nil, nil
	}
	return os.Open(g.V2)
}

// joinParentGroups moves this thread to the parents of the version 1 cgroups. If the parents are not visible, in
// a container, Remove does it.
func (g Cgroup) joinParentGroups() {
	for _, dir := range g.V1 {
		_ = os.WriteFile(filepath.Join(filepath.Dir(dir), "tasks"), []byte("0"), 0)
	}
}

// Add moves a process into the group.
func (g Cgroup) Add(pid int) error {
	for _, dir := range g.Dirs() {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0); err != nil {
			return fmt.Errorf("move process %d into its cgroup: %w", pid, err)
		}
	}
	return nil
}

// OOMKilled reports whether the kernel killed a process of the cgroup because it had no memory left.
func (g Cgroup) OOMKilled() bool {
	for _, path := range []string{filepath.Join(g.V1["memory"], "memory.oom_control"), filepath.Join(g.V2, "memory.events")} {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok && n != "0" {
				return true
			}
		}
	}
	return false
}

// Refused reports whether the kernel refused a fork because the cgroup or its parent has reached its pids limit.
// Kernels differ in which of the two counts the refusal.
func (g Cgroup) Refused() bool {
	dir := cmp.Or(g.V2, g.V1["pids"])
	if dir == "" {
		return false
	}
	for _, group := range []string{dir, filepath.Dir(dir)} {
		data, _ := os.ReadFile(filepath.Join(group, "pids.events")) // not every kernel has the file
		if n, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "max "); ok && n != "0" {
			return true
		}
	}
	return false
}

// Kill kills every process in the cgroup, including processes that are not descendants of this process.
func (g Cgroup) Kill() {
	if g.V2 != "" && os.WriteFile(filepath.Join(g.V2, "cgroup.kill"), []byte("1"), 0) == nil {
		return
	}
	for _, dir := range g.Dirs() {
		if killMembers(dir) == nil {
			return
		}
	}
}

// listMembers returns the processes in the cgroup dir, without this process and without processes of other PID
// namespaces.
func listMembers(dir string) ([]int, error) {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var pids []int
	for line := range bytes.Lines(data) {
		if pid, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil && pid > 0 && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Remove removes the cgroups. They may contain only killed processes and threads of this process.
func (g Cgroup) Remove() error {
	var errs []error
	until := time.Now().Add(exitPatience)
	for controller, dir := range g.V1 {
		if tasks, err := os.ReadFile(filepath.Join(dir, "tasks")); err == nil {
			for line := range bytes.Lines(tasks) {
				_ = os.WriteFile(filepath.Join(filepath.Dir(dir), "tasks"), bytes.TrimSpace(line), 0)
			}
		}
		if err := onceEmpty(until, func() error { return syscall.Rmdir(dir) }); err != nil {
			errs = append(errs, fmt.Errorf("remove the cgroup %s of %s: %w", dir, controller, err))
		}
	}
	if g.V2 != "" {
		if err := onceEmpty(until, func() error { return syscall.Rmdir(g.V2) }); err != nil {
			errs = append(errs, fmt.Errorf("remove the cgroup %s: %w", g.V2, err))
		}
	}
	return errors.Join(errs...)
}

// exitPatience limits the wait for the exit of killed processes, for all cgroups of a container together.
const exitPatience = 2 * time.Second

// onceEmpty retries the removal of a cgroup until it is empty: a killed process stays in its cgroup until the
// kernel has freed its memory. A missing cgroup is no error.
func onceEmpty(until time.Time, rmdir func() error) error {
	for ; ; time.Sleep(10 * time.Millisecond) {
		switch err := rmdir(); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case !errors.Is(err, syscall.EBUSY) || time.Now().After(until):
			return err
		}
	}
}
