// SPDX-License-Identifier: Apache-2.0

package podjobtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// Harness returns a harness of the contract whose containers are programs of this machine. The caller fills the rest.
func Harness(t *testing.T) providertest.Harness {
	t.Helper()
	path := Program(t)
	return providertest.Harness{
		Container: func(_ *corev1.Pod, k *corev1.Container, p program.Program) error {
			k.Image, k.Command, k.Args = "programs", []string{path}, p.Args()
			return nil
		},
		Command:  func(p program.Program) ([]string, error) { return append([]string{path}, p.Args()...), nil },
		Patience: time.Minute, Every: 50 * time.Millisecond, Parallel: 6, Many: 8,
	}
}

// KillContainer kills the only container below a supervisor, whose process ID is pid.
func KillContainer(pid int) error {
	container, err := FindContainer(pid)
	if err != nil {
		return err
	}
	return syscall.Kill(container, syscall.SIGKILL)
}

// FindContainer returns the process ID of the only container below a supervisor, whose process ID is pid. 0 means that the supervisor does not run.
func FindContainer(pid int) (int, error) {
	if pid == 0 {
		return 0, errors.New("the supervisor of the container does not run")
	}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range lists {
		data, _ := os.ReadFile(path)
		for _, child := range strings.Fields(string(data)) {
			line, _ := os.ReadFile("/proc/" + child + "/cmdline")
			name, _, _ := strings.Cut(string(line), "\x00")
			if filepath.Base(name) == ProgramName {
				return strconv.Atoi(child)
			}
		}
	}
	return 0, fmt.Errorf("process %d has no container", pid)
}
