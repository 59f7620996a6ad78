// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// besideEnv is set if the supervisor program is in the directory of the test program.
const besideEnv = "PROCESS_SUPERVISOR_BESIDE"

// TestContainersWithTheSupervisorBeside runs tests with the small program as the supervisor of their containers.
func TestContainersWithTheSupervisorBeside(t *testing.T) {
	if os.Getenv(isolationEnv) != "" || os.Getenv(besideEnv) != "" || os.Getenv(noisyEnv) != "" {
		t.Skip("it is this one that runs them")
	}
	t.Parallel()
	images, err := imageDir()
	if err != nil {
		t.Fatal(images, err)
	}
	dir := t.TempDir()
	const stamp = "-X github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim.build=tests"
	program := filepath.Join(dir, "tests")
	tests := []string{"test", "-c", "-vet=off", "-o", program, "-ldflags", stamp}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		tests = append(tests, "-race")
	}
	small := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "virtual-kubelet-container"), "-ldflags", stamp, "./supervisor")
	small.Env = append(os.Environ(), "CGO_ENABLED=0")
	for _, build := range []*exec.Cmd{small, exec.CommandContext(t.Context(), "go", append(tests, ".")...)} {
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.v", "-test.run", "^(TestSupervisorIsTheProgramBeside|TestContainerRuns|TestExec|TestTerminal|TestAttach|TestKilled|TestAnother|TestStop|TestNothing|TestLog)")
	cmd.Env = append(os.Environ(), besideEnv+"=1", "PROCESS_IMAGES="+images)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "\n--- PASS: TestSupervisorIsTheProgramBeside") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSupervisorIsTheProgramBeside checks that the small program in the daemon's directory runs as the
// supervisor, and not the daemon's much larger program.
func TestSupervisorIsTheProgramBeside(t *testing.T) {
	if os.Getenv(besideEnv) == "" {
		t.Skip("TestContainersWithTheSupervisorBeside runs it")
	}
	w := open(t, nil)
	id := w.run("main", nil, "sleep", "605")
	path, err := os.Readlink("/proc/" + strconv.Itoa(w.state(id).Shim.PID) + "/exe")
	if err != nil || filepath.Base(path) != "virtual-kubelet-container" {
		t.Errorf("the supervisor is %s, %v", path, err)
	}
}
