// SPDX-License-Identifier: Apache-2.0

package podjob

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
)

// cgroupRoot is the mount point of the unified cgroup hierarchy.
const cgroupRoot = "/sys/fs/cgroup"

// MissingControllers returns the controllers of the unified cgroup hierarchy at root that limits of containers need and the kernel lacks.
func MissingControllers(root string) (missing []string) {
	data, _ := os.ReadFile(filepath.Join(root, "cgroup.controllers")) // without the file, there is no hierarchy
	has := " " + strings.TrimSpace(string(data)) + " "
	for _, name := range []string{"cpu", "memory", "pids"} {
		if !strings.Contains(has, " "+name+" ") {
			missing = append(missing, name)
		}
	}
	return missing
}

// podPids returns the limit of processes and threads of a pod: half of the machine's limit, so that this process keeps working.
func podPids() int64 {
	data, err := os.ReadFile("/proc/sys/kernel/threads-max")
	if err != nil {
		return podruntime.DefaultPodPidsLimit
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return podruntime.DefaultPodPidsLimit
	}
	return min(podruntime.DefaultPodPidsLimit, max(n/2, 1))
}

// limitFiles returns the files of a cgroup with the limits of a container.
func limitFiles(l *runtimeapi.LinuxContainerResources) map[string]string {
	files := map[string]string{}
	for name, value := range l.GetUnified() {
		files[name] = value
	}
	if n := l.GetMemoryLimitInBytes(); n > 0 {
		files["memory.max"] = strconv.FormatInt(n, 10)
		if swap := l.GetMemorySwapLimitInBytes(); swap >= n {
			files["memory.swap.max"] = strconv.FormatInt(swap-n, 10)
		}
	}
	if n := l.GetCpuShares(); n > 0 {
		files["cpu.weight"] = strconv.FormatInt(min(max(1+(n-2)*9999/262142, 1), 10000), 10)
	}
	if n := l.GetCpuQuota(); n > 0 {
		files["cpu.max"] = fmt.Sprintf("%d %d", n, l.GetCpuPeriod())
	}
	return files
}

// makeCgroup makes a cgroup with limits. It leaves out the limits of missing controllers.
func makeCgroup(dir string, limits *runtimeapi.LinuxContainerResources) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the mode of the kernel's own cgroups
		return fmt.Errorf("make the cgroup of the container: %w", err)
	}
	for name, value := range limitFiles(limits) {
		file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			_, err = file.WriteString(value)
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			return fmt.Errorf("limit the container: write %s: %w", value, err)
		}
	}
	return nil
}

// startIn makes cmd start in the cgroup with that directory; "" means the cgroup of this process. The caller closes the returned file after the start.
func startIn(dir string, cmd *exec.Cmd) (*os.File, error) {
	if dir == "" {
		return nil, nil
	}
	group, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open the cgroup of the container: %w", err)
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(group.Fd())
	return group, nil
}

// wasOOMKilled reports whether the kernel killed a process of a cgroup because memory was used up.
func wasOOMKilled(dir string) bool {
	if dir == "" {
		return false
	}
	file, err := os.Open(filepath.Join(dir, "memory.events"))
	if err != nil {
		return false
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if n, ok := strings.CutPrefix(lines.Text(), "oom_kill "); ok {
			return n != "0"
		}
	}
	return false
}
