// SPDX-License-Identifier: Apache-2.0

package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const hierarchies = "/sys/fs/cgroup"

// Cgroups returns the directories of a cgroup: one for each hierarchy of version 1, or one for version 2.
func Cgroups(name string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(hierarchies, "cgroup.controllers")); err == nil {
		return []string{filepath.Join(hierarchies, name)}, nil
	}
	entries, err := os.ReadDir(hierarchies)
	if err != nil {
		return nil, fmt.Errorf("find the cgroups of this machine: %w", err)
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(hierarchies, e.Name(), name))
		}
	}
	return dirs, nil
}

// MakeCgroup makes a cgroup in each hierarchy, below an existing cgroup.
func MakeCgroup(name string) error {
	dirs, err := Cgroups(name)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make a cgroup: %w", err)
		}
		// A cpuset of version 1 begins empty, and can hold no process as long as it is empty.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			all, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
			if err != nil {
				continue // not the hierarchy of cpusets
			}
			if err := os.WriteFile(filepath.Join(dir, file), all, 0o644); err != nil {
				return fmt.Errorf("fill a cgroup: %w", err)
			}
		}
	}
	return nil
}

// removeCgroups removes the cgroups, the innermost ones first. It tries for a while, because a killed process leaves its cgroup a
// moment later.
func removeCgroups(name string) error {
	dirs, err := Cgroups(name)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		var last error
		for _, dir := range dirs {
			last = errors.Join(last, removeCgroup(dir))
		}
		if last == nil || time.Now().After(deadline) {
			return last
		}
		<-time.After(100 * time.Millisecond)
	}
}

func removeCgroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeCgroup(filepath.Join(dir, e.Name())))
		}
	}
	if removed := os.Remove(dir); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// forwardSignals passes signals that end this program on to the program inside.
func forwardSignals(child *os.Process) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for s := range signals {
			_ = child.Signal(s) // the program may have ended
		}
	}()
}
