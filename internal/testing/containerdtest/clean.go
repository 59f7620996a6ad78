// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerdtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// closeTime is the longest time for the removal of all pods.
const closeTime = 2 * time.Minute

// Close removes all pods, ends containerd, and removes its files and networks from this machine. Later calls do
// nothing: the slot may have a new owner.
func (c *Containerd) Close() error { return c.close() }

func (c *Containerd) remove() error {
	defer c.slot.unlockFile()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	// The network plugins undo their changes to the machine when containerd removes a sandbox. The sweep below
	// removes the rest, so the error does not count.
	_ = c.RemovePods(ctx)
	return errors.Join(c.Stop(), c.removeRemains())
}

// RemovePods removes all sandboxes, and with them their containers.
func (c *Containerd) RemovePods(ctx context.Context) error {
	conn, err := c.Connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	client := runtimeapi.NewRuntimeServiceClient(conn)
	list, err := client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return fmt.Errorf("list sandboxes: %w", err)
	}
	var errs []error
	for _, sandbox := range list.GetItems() {
		_, err := client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox.GetId()})
		if err != nil && status.Code(err) != codes.NotFound { // the owner of the sandbox may be removing it too
			errs = append(errs, fmt.Errorf("stop sandbox %s: %w", sandbox.GetId(), err))
		}
		if _, err := client.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: sandbox.GetId()}); err != nil {
			errs = append(errs, fmt.Errorf("remove sandbox %s: %w", sandbox.GetId(), err))
		}
	}
	return errors.Join(errs...)
}

// removeRemains removes everything that a containerd in this slot has left. It needs only the number of the slot, so it
// works for a containerd that was killed long ago.
func (c *Containerd) removeRemains() error {
	endProcesses(c.slot.dir)
	errs := []error{Unmount(c.slot.dir), RemoveCgroup(c.CgroupParent)}
	if _, err := os.Stat("/sys/class/net/" + c.Bridge); err == nil {
		if out, err := exec.Command("ip", "link", "del", c.Bridge).CombinedOutput(); err != nil { //nolint:noctx // the command ends at once
			errs = append(errs, fmt.Errorf("remove bridge %s: %w: %s", c.Bridge, err, out))
		}
	}
	if err := os.RemoveAll(c.slot.dir); err != nil {
		errs = append(errs, fmt.Errorf("remove the directory of containerd: %w", err))
	}
	return errors.Join(errs...)
}

// endProcesses kills containerd and its shims, which name the directory in their command lines, and the
// containers below the shims, which do not.
func endProcesses(dir string) {
	parents, ours := map[int]int{}, []int{}
	entries, _ := os.ReadDir("/proc") // without /proc no process can be found
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		parents[pid] = parentOf(pid)
		if line, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline")); isOurs(line, dir) {
			ours = append(ours, pid)
		}
	}
	for len(ours) > 0 {
		pid := ours[0]
		ours = ours[1:]
		_ = syscall.Kill(pid, syscall.SIGKILL) // an error means that the process has ended
		for child, parent := range parents {
			if parent == pid {
				ours = append(ours, child)
			}
		}
	}
}

// isOurs recognizes a containerd or a shim of the directory by its command line.
func isOurs(cmdline []byte, dir string) bool {
	args := bytes.Split(cmdline, []byte{0})
	if !strings.HasPrefix(filepath.Base(string(args[0])), "containerd") {
		return false
	}
	return slices.ContainsFunc(args, func(arg []byte) bool { return bytes.HasPrefix(arg, []byte(dir+"/")) })
}

// parentOf returns the process that started pid, or 0 when that process has ended.
func parentOf(pid int) int {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // the process may have ended
	_, after, _ := bytes.Cut(stat, []byte(") "))              // the name before the parenthesis may contain any character
	fields := bytes.Fields(after)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1])) // the kernel writes a number
	return parent
}

// Unmount unmounts every mount below dir, the deepest first.
func Unmount(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("find mounts: %w", err)
	}
	var points []string
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			points = append(points, fields[4])
		}
	}
	slices.Reverse(points) // mount points are in the order of mounting
	var errs []error
	for _, point := range points {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	return errors.Join(errs...)
}

// RemoveCgroup removes the cgroup in every hierarchy, children first. Its processes were just killed, and the cgroup is busy until the
// kernel has removed them.
func RemoveCgroup(name string) error {
	roots, _ := filepath.Glob("/sys/fs/cgroup/*" + name) // the pattern is well-formed
	roots = append(roots, "/sys/fs/cgroup"+name)
	deadline := time.Now().Add(10 * time.Second)
	for {
		var failed error
		for _, root := range roots {
			failed = errors.Join(failed, removeTree(root))
		}
		if failed == nil || time.Now().After(deadline) {
			return failed
		}
		<-time.After(20 * time.Millisecond)
	}
}

// removeTree removes the directories of a cgroup; their files cannot be removed and need not be.
func removeTree(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil //nolint:nilerr // a missing group need not be removed
	})
	if err != nil {
		return fmt.Errorf("find cgroups: %w", err)
	}
	slices.Reverse(dirs)
	for _, dir := range dirs {
		if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.ENOENT) {
			return fmt.Errorf("remove cgroup %s: %w", dir, err)
		}
	}
	return nil
}
