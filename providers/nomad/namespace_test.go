// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// agentPath is the path of the agent that hack/build-nomad.sh builds.
const agentPath = "../../bin/nomad/nomad"

// Environment variables of the tests.
const (
	requireAgent = "VK_REQUIRE_NOMAD"   // with 1, the tests fail if they cannot run on the agent
	inside       = "VK_NOMAD_NAMESPACE" // set by TestMain in the process that it starts
	allocations  = "VK_NOMAD_RAN"       // set as well: the file with the allocations that agents ran
)

// TestMain runs the tests in a process with its own namespaces for network, mounts and processes, so that the
// bridge, the iptables rules, the mounts and the tasks of an agent end with that process.
func TestMain(m *testing.M) {
	if os.Getenv(inside) == "" && whyNoAgent() == "" {
		os.Exit(again())
	}
	if os.Getenv(inside) != "" && whyNoAgent() == "" {
		// The files that record the networks of pods must belong to this process alone, too.
		script := "ip link set lo up && mkdir -p /run/netns /run/cni && mount -t tmpfs vk /run/netns && mount -t tmpfs vk /run/cni"
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %s\n", err, out)
			os.Exit(1)
		}
	}
	code := m.Run()
	theAgent.stop()
	os.Exit(code)
}

func again() int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	group := fmt.Sprintf("vknomad%d", os.Getpid())
	ran, err := os.CreateTemp("", group)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.Remove(ran.Name())
	defer ran.Close()
	// The shell is the first process of the namespace. It reaps the processes that a killed agent leaves: until
	// they are reaped, the next agent believes that they are alive.
	init := []string{"--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--", "/bin/sh", "-c", `"$0" "$@" & wait $!`, self}
	command := exec.Command("unshare", append(init, os.Args[1:]...)...)
	command.Env = append(os.Environ(), inside+"="+group, allocations+"="+ran.Name())
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	if os.Getenv(demoFile) != "" {
		if command.ExtraFiles, err = demoDescriptors(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	err = command.Run()
	allocs, _ := os.ReadFile(ran.Name())
	if left := removeGroups(group, strings.Fields(string(allocs))); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "control groups are left: %q\n", left)
		return 1
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// removeGroups removes the control groups of allocations and of the Docker daemon. It returns the groups that
// still have processes and so cannot be removed. All agents of a machine share the place where Nomad makes these
// groups.
func removeGroups(group string, allocs []string) (left []string) {
	patterns := []string{"/sys/fs/cgroup/*/" + group + "*", "/sys/fs/cgroup/" + group + "*"}
	for _, id := range allocs {
		for _, at := range groupsOfAllocations {
			patterns = append(patterns, at+id+".*")
		}
	}
	for _, pattern := range patterns {
		roots, _ := filepath.Glob(pattern)
		for _, root := range roots {
			var all []string
			_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					all = append(all, path)
				}
				return nil
			})
			for _, path := range slices.Backward(all) {
				if syscall.Rmdir(path) != nil {
					left = append(left, path)
				}
			}
		}
	}
	return left
}

// groupsOfAllocations are the patterns of Nomad's control groups, in both versions of control groups.
var groupsOfAllocations = []string{"/sys/fs/cgroup/*/nomad/", "/sys/fs/cgroup/*/nomad/*/", "/sys/fs/cgroup/nomad.slice/*/"}

// whyNoAgent returns why the tests on the agent cannot run, or "".
func whyNoAgent() string {
	if _, err := os.Stat(agentPath); err != nil {
		return "there is no agent of Nomad: make bin/nomad/nomad builds it"
	}
	if os.Geteuid() != 0 {
		return "the agent of Nomad runs tasks as root only"
	}
	for _, program := range []string{"unshare", "ip", "iptables", "busybox"} {
		if _, err := exec.LookPath(program); err != nil {
			return "there is no program " + program
		}
	}
	if _, err := os.Stat("/usr/lib/cni/bridge"); err != nil {
		return "there are no CNI plugins in /usr/lib/cni"
	}
	return ""
}

// unmountBelow unmounts everything below a directory.
func unmountBelow(dir string) {
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for _, line := range slices.Backward(strings.Split(string(mounts), "\n")) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], dir+"/") {
			_ = syscall.Unmount(f[1], syscall.MNT_DETACH)
		}
	}
}
