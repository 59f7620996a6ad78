// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// numbers returns the process numbers that ls found in /proc.
func numbers(list string) []string {
	var pids []string
	for _, name := range strings.Fields(list) {
		if _, err := strconv.Atoi(name); err == nil {
			pids = append(pids, name)
		}
	}
	return pids
}

func TestContainerListsItsProcessesOnly(t *testing.T) {
	w := open(t, nil)
	w.run("other", nil, "sleep", "600")
	id := w.run("main", nil, "sleep", "601")
	out, _, err := w.ExecSync(t.Context(), id, []string{"ls", "/proc"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	seen := ""
	for _, pid := range numbers(string(out)) {
		line, _, _ := w.ExecSync(t.Context(), id, []string{"cat", "/proc/" + pid + "/cmdline"}, time.Minute)
		seen += strings.ReplaceAll(string(line), "\x00", " ") + "\n"
	}
	// The container has two processes: its main process and the command.
	if got := numbers(string(out)); len(got) != 2 || !strings.Contains(seen, "sleep 601") || strings.Contains(seen, "sleep 600") {
		t.Errorf("processes: got %v\n%s", got, seen)
	}
	if w.Isolation() == process.IsolationGVisor {
		return // the sandbox has no processes of the machine
	}
	w.ended(w.run("machine", func(c *runtimeapi.ContainerConfig) {
		c.Linux.SecurityContext.NamespaceOptions = &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_NODE}
	}, "ls", "/proc"))
	if !strings.Contains(w.log("machine"), "stdout F "+strconv.Itoa(os.Getpid())+"\n") {
		t.Error("hostPID: the processes of the machine are not there")
	}
}

func limited(memory int64) func(*runtimeapi.ContainerConfig) {
	return func(c *runtimeapi.ContainerConfig) {
		c.Linux.Resources = &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: memory, CpuQuota: 50000, CpuPeriod: 100000, CpuShares: 512}
	}
}

// needLimits skips a test if this process may not make cgroups.
func (w *world) needLimits() {
	w.t.Helper()
	s, err := w.Status(w.t.Context(), false)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range s.GetStatus().GetConditions() {
		if c.GetType() == "Limits" && !c.GetStatus() {
			w.t.Skipf("limits are not kept here: %s", c.GetMessage())
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	w := open(t, nil)
	w.needLimits()
	if s := w.ended(w.run("much", limited(48<<20), "eat", "256")); s.GetReason() != "OOMKilled" || s.GetExitCode() != 137 {
		t.Errorf("more than the limit: got %v", s)
	}
	// A shell ends with the exit code of its killed command.
	if s := w.ended(w.run("child", limited(48<<20), "eat", "child", "256")); s.GetReason() != "OOMKilled" || s.GetExitCode() != 137 {
		t.Errorf("a child with more than the limit: got %v", s)
	}
	id := w.run("little", limited(128<<20), "eat", "16")
	w.until("the memory", func() bool { return strings.Contains(w.log("little"), "ate 16") })
	if s := w.status(id); s.GetResources().GetLinux().GetMemoryLimitInBytes() != 128<<20 {
		t.Errorf("resources: got %v", s.GetResources())
	}
	if err := w.UpdateContainerResources(t.Context(), id, &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 64 << 20}}); err != nil {
		t.Fatal(err)
	}
	inside := "/sys/fs/cgroup/memory.max"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
		inside = "/sys/fs/cgroup/memory/memory.limit_in_bytes"
	}
	if got := w.memoryLimit(id); got != strconv.Itoa(64<<20) {
		t.Errorf("the limit after a change: got %s", got)
	}
	if w.Isolation() == process.IsolationRunc {
		out, _, err := w.ExecSync(t.Context(), id, []string{"cat", inside}, time.Minute)
		if err != nil || strings.TrimSpace(string(out)) != strconv.Itoa(64<<20) {
			t.Errorf("the limit as the container finds it in %s: got %q, %v", inside, out, err)
		}
		if out, _, _ := w.ExecSync(t.Context(), id, []string{"ls", "/sys/fs/cgroup"}, time.Minute); strings.Contains(string(out), "vk-") {
			t.Errorf("the container sees the cgroups of others: %s", out)
		}
	}
	// A kill that does not come from the kernel is no lack of memory.
	if err := w.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	if s := w.status(id); s.GetReason() != "Error" || s.GetExitCode() != 137 {
		t.Errorf("a stopped container: got %v", s)
	}
}

// memoryLimit returns the kernel's memory limit of a container.
func (w *world) memoryLimit(id string) string {
	w.t.Helper()
	data, err := os.ReadFile("/proc/" + strconv.Itoa(w.state(id).Init.PID) + "/cgroup")
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for _, path := range []string{
			filepath.Join("/sys/fs/cgroup", fields[1], fields[2], "memory.limit_in_bytes"), filepath.Join("/sys/fs/cgroup", fields[2], "memory.max"),
		} {
			if limit, err := os.ReadFile(path); err == nil && strings.Contains(path, id) {
				return strings.TrimSpace(string(limit))
			}
		}
	}
	w.t.Fatalf("container %s has no cgroup of its own: %s", id, data)
	return ""
}

func TestStats(t *testing.T) {
	w := open(t, nil)
	id := w.run("eat", nil, "eat", "32")
	w.until("the memory", func() bool { return strings.Contains(w.log("eat"), "ate 32") })
	w.ended(w.run("ended", nil, "exit", "0"))
	list, err := w.ListContainerStats(t.Context(), nil)
	if err != nil || len(list) != 1 || list[0].GetAttributes().GetId() != id {
		t.Fatalf("got %v, %v", list, err)
	}
	s := list[0]
	for what, n := range map[string]uint64{
		"in use": s.GetMemory().GetUsageBytes().GetValue(), "working set": s.GetMemory().GetWorkingSetBytes().GetValue(), "resident": s.GetMemory().GetRssBytes().GetValue(),
	} {
		if n < 32<<20 || n > 256<<20 {
			t.Errorf("memory %s: got %d, want about 32 MiB", what, n)
		}
	}
	w.until("time of a CPU", func() bool {
		s, err := w.ContainerStats(t.Context(), id)
		return err == nil && s.GetCpu().GetUsageCoreNanoSeconds().GetValue() > 0
	})
}

func TestLogGoesOnInANewFile(t *testing.T) {
	w := open(t, nil)
	id := w.run("hello", nil, "demo")
	w.until("a line", func() bool { return strings.Contains(w.log("hello"), "hello 1 ") })
	path := filepath.Join(w.logs, "hello.log")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := w.ReopenContainerLog(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.until("a line in the new file", func() bool { return strings.Contains(w.log("hello"), "hello ") })
	old, err := os.ReadFile(path + ".1")
	if err != nil {
		t.Fatal(err)
	}
	all := string(old) + w.log("hello")
	for n := 1; n <= strings.Count(all, "hello "); n++ {
		if strings.Count(all, "hello "+strconv.Itoa(n)+" from pod-1") != 1 {
			t.Errorf("line %d is not there once: %q", n, all)
		}
	}
	w.ended(w.run("ended", nil, "exit", "0"))
	if err := w.ReopenContainerLog(t.Context(), "absent"); err == nil {
		t.Error("the log of no container: got no error")
	}
}
