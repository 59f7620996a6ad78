// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// accounts measures the usage of agents and of all their processes with control groups: runtimes, supervisors, shims and sandboxes,
// including processes that have ended. An agent creates the groups of its pods below them.
type accounts struct {
	name string // name of the parent of all groups
	root string // hierarchy of the accounting
	v2   bool
}

// containerdGroup is the group of a containerd that agents share.
const containerdGroup = "containerd"

// killTime is the longest time until killed processes are gone.
const killTime = 10 * time.Second

// openAccounts makes the group above all others.
func openAccounts() (*accounts, error) {
	a := &accounts{name: fmt.Sprintf("/vk-bench-%d", os.Getpid()), root: "/sys/fs/cgroup"}
	_, err := os.Stat(filepath.Join(a.root, "cgroup.controllers"))
	if a.v2 = err == nil; !a.v2 {
		a.root = filepath.Join(a.root, "cpuacct")
	}
	if err := os.Mkdir(filepath.Join(a.root, a.name), 0o755); err != nil {
		return nil, fmt.Errorf("make a control group: %w", err)
	}
	return a, nil
}

// podsGroup returns the parent group for the pods of an agent, or of containerd.
func (a *accounts) podsGroup(name string) string { return filepath.Join(a.name, name, "pods") }

// makeDaemonGroup makes the group of an agent, or of containerd, and returns the file that takes processes into it.
func (a *accounts) makeDaemonGroup(name string) (string, error) {
	dir := filepath.Join(a.root, a.name, name, "daemon")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make a control group: %w", err)
	}
	return filepath.Join(dir, "cgroup.procs"), nil
}

// startInGroup puts the program into the group from its first moment.
func (a *accounts) startInGroup(cmd *exec.Cmd, name string) error {
	file, err := a.makeDaemonGroup(name)
	if err != nil {
		return err
	}
	cmd.Args = append([]string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, file, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	return nil
}

// accountOf returns the account of the groups of these names.
func (a *accounts) accountOf(names ...string) *account {
	sum := &account{v2: a.v2}
	for _, name := range names {
		sum.dirs = append(sum.dirs, filepath.Join(a.root, a.name, name))
	}
	return sum
}

// close kills the remaining processes, and removes the groups.
func (a *accounts) close() error {
	return errors.Join(a.accountOf("").killProcesses(), removeCgroup(a.name))
}

// account is the total usage of the processes of some groups.
type account struct {
	dirs []string
	v2   bool
}

// cpuTime returns the CPU time of all processes, including ended ones.
func (a *account) cpuTime() (sum time.Duration, err error) {
	for _, dir := range a.dirs {
		used, err := a.cpuTimeOf(dir)
		if err != nil {
			return 0, fmt.Errorf("read CPU time: %w", err)
		}
		sum += used
	}
	return sum, nil
}

func (a *account) cpuTimeOf(dir string) (time.Duration, error) {
	if !a.v2 {
		text, err := os.ReadFile(filepath.Join(dir, "cpuacct.usage"))
		if err != nil {
			return 0, err
		}
		nanos, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		return time.Duration(nanos), err
	}
	text, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		return 0, err
	}
	return parseCPUStat(string(text))
}

// parseCPUStat reads the CPU time in the format of cgroup version 2.
func parseCPUStat(text string) (time.Duration, error) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "usage_usec "); ok {
			micros, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return time.Duration(micros) * time.Microsecond, err
		}
	}
	return 0, errors.New("there is no line usage_usec")
}

// findProcesses returns the processes in the groups, and below them.
func (a *account) findProcesses() (pids []int, err error) {
	for _, dir := range a.dirs {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // the group was removed in the meantime
			}
			if err != nil || entry.Name() != "cgroup.procs" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENODEV) {
				return err
			}
			for line := range strings.FieldsSeq(string(text)) {
				pid, err := strconv.Atoi(line)
				if err != nil {
					return err
				}
				pids = append(pids, pid)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("find processes: %w", err)
		}
	}
	return pids, nil
}

// readMemory returns the memory in bytes of all processes. Shared memory is divided by the number of its users.
func (a *account) readMemory() (sum int64, err error) {
	pids, err := a.findProcesses()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		bytes, err := proportionalMemory(pid)
		if err != nil && !hasEnded(err) {
			return 0, err
		}
		sum += bytes
	}
	return sum, nil
}

// hasEnded reports whether a process has ended.
func hasEnded(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// killProcesses ends all processes, including processes that they start meanwhile, and returns when all have ended.
func (a *account) killProcesses() error {
	ctx, cancel := context.WithTimeout(context.Background(), killTime)
	defer cancel()
	for {
		pids, err := a.findProcesses()
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // an error means that it has ended
		}
		if waitFor(ctx, 10*time.Millisecond) != nil {
			return fmt.Errorf("%d processes did not end within %s of SIGKILL", len(pids), killTime)
		}
	}
}
