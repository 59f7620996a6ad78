// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
)

// imageDir returns the directory with the images of the demo and of the contract.
var imageDir = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("PROCESS_IMAGES"); dir != "" {
		return dir, nil
	}
	dir, err := os.MkdirTemp("", "process-images-")
	if err != nil {
		return "", err
	}
	program, contract := filepath.Join(dir, "demo"), filepath.Join(dir, "contractprogram")
	for _, args := range [][]string{
		{"build", "-o", program, "./demo"},
		{"build", "-o", contract, "github.com/virtual-kubelet/virtual-kubelet/providertest/program/contractprogram"},
		{"run", "./demo/pack", "-name", "contract", "-o", contract + ".tar", contract},
		{"run", "./demo/pack", "-name", "demo", "-o", program + ".tar", program, "cat", "env", "exit", "hostname", "id", "ls", "sleep", "tar", "linger", "size", "eat"},
	} {
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return string(out), err
		}
	}
	return dir, os.Chmod(dir, 0o755)
})

func TestMain(m *testing.M) {
	if dir := os.Getenv(daemonEnv); dir != "" {
		daemon(dir)
	}
	code := m.Run()
	if dir, err := imageDir(); err == nil && os.Getenv("PROCESS_IMAGES") == "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// testConfig returns the configuration of tests that do not set the isolation. As root it uses runc, which is
// faster. TestOnGVisor runs a part of these tests with gVisor, as root and as another user.
func testConfig(stateDir, images string) process.Config {
	c := process.Config{StateDir: stateDir, Images: []string{images}, Isolation: os.Getenv(isolationEnv)}
	if c.Isolation == process.IsolationCrun {
		c.RuntimePath = os.Getenv(runtimeEnv)
	}
	if c.Isolation == "" && os.Geteuid() == 0 {
		c.Isolation = process.IsolationRunc
	}
	if c.Isolation == process.IsolationRunc {
		c.NetworkProgram = gvisorProgram()
	}
	if c.Isolation = cmp.Or(c.Isolation, process.IsolationGVisor); c.Isolation == process.IsolationGVisor {
		c.RuntimePath = gvisorProgram()
	}
	return c
}

// world is a runtime with one sandbox.
type world struct {
	*process.Runtime
	t       *testing.T
	config  process.Config
	sandbox string
	logs    string
}

// open returns a world with a new sandbox, whose containers end with the test.
func open(t *testing.T, change func(*process.Config)) *world {
	t.Helper()
	dir, err := imageDir()
	if err != nil {
		t.Fatal(dir, err)
	}
	w := &world{t: t, config: testConfig(t.TempDir(), dir), logs: t.TempDir()}
	if change != nil {
		change(&w.config)
	}
	switch w.config.Isolation {
	case process.IsolationGVisor:
		w.config.RuntimePath = needGVisor(t)
	case process.IsolationRunc:
		needRunc(t)
	}
	w.reopen()
	w.sandbox, err = w.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "p", Namespace: "default", Uid: "u1"}, Hostname: "pod-1", LogDirectory: w.logs,
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

// close removes the sandbox and ends the runtime.
func (w *world) close() {
	if err := w.RemovePodSandbox(context.Background(), w.sandbox); err != nil {
		w.t.Error(err)
	}
	w.Close(context.Background())
}

// reopen opens the runtime again, as the next daemon does.
func (w *world) reopen() {
	w.t.Helper()
	r, err := process.Open(w.t.Context(), w.config, "n1", "192.0.2.1")
	if err != nil {
		w.t.Fatal(err)
	}
	w.Runtime = r
}

// run starts a container.
func (w *world) run(name string, change func(*runtimeapi.ContainerConfig), command ...string) string {
	w.t.Helper()
	id, err := w.tryRun(name, change, command...)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func configOf(name string, change func(*runtimeapi.ContainerConfig), command ...string) *runtimeapi.ContainerConfig {
	config := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name}, Image: &runtimeapi.ImageSpec{Image: "demo"},
		Command: command, LogPath: name + ".log", Linux: &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{}},
	}
	if change != nil {
		change(config)
	}
	return config
}

func (w *world) tryRun(name string, change func(*runtimeapi.ContainerConfig), command ...string) (string, error) {
	id, err := w.CreateContainer(w.t.Context(), w.sandbox, configOf(name, change, command...), nil)
	if err != nil {
		return "", err
	}
	return id, w.StartContainer(w.t.Context(), id)
}

// until waits until ok returns true.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.After(2 * time.Minute)
	for !ok() {
		select {
		case <-deadline:
			w.t.Fatalf("it did not come: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (w *world) status(id string) *runtimeapi.ContainerStatus {
	w.t.Helper()
	s, err := w.ContainerStatus(w.t.Context(), id, false)
	if err != nil {
		w.t.Fatal(err)
	}
	return s.GetStatus()
}

// ended waits for the end of a container and returns its status.
func (w *world) ended(id string) *runtimeapi.ContainerStatus {
	w.t.Helper()
	w.until("the end of a container", func() bool { return w.status(id).GetState() == runtimeapi.ContainerState_CONTAINER_EXITED })
	return w.status(id)
}

// log returns the lines of a log, without times.
func (w *world) log(name string) string {
	data, err := os.ReadFile(filepath.Join(w.logs, name+".log"))
	if err != nil {
		w.t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		lines = append(lines, rest)
	}
	return strings.Join(lines, "\n")
}
