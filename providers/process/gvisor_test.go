// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// runtimeEnv names the runtime program that the tests use.
const runtimeEnv = "PROCESS_RUNTIME"

// gvisorProgram returns the path of gVisor: the program that make runsc has built, or the one on PATH, or "".
func gvisorProgram() string {
	if path := os.Getenv(runtimeEnv); path != "" {
		return path
	}
	if built, err := filepath.Abs("../../bin/runsc"); err == nil && exists(built) {
		return built
	}
	path, _ := exec.LookPath("runsc")
	return path
}

// needGVisor returns the path of gVisor, and skips the test if there is none.
func needGVisor(t *testing.T) string {
	t.Helper()
	path := gvisorProgram()
	if path == "" && os.Getenv("VK_REQUIRE_RUNSC") != "" {
		t.Fatal("gVisor is neither in bin/ nor on PATH")
	}
	if path == "" {
		t.Skip("gVisor is not there: make runsc builds it into bin/")
	}
	return path
}

// TestOnGVisor runs tests of this package with pods in gVisor sandboxes. From the contract it runs only the
// checks that depend on how containers are made; PROCESS_ISOLATION=gvisor with TestContract runs all of them.
func TestOnGVisor(t *testing.T) {
	if os.Getenv(isolationEnv) != "" {
		t.Skip("it is this one that runs them")
	}
	program := needGVisor(t)
	if os.Geteuid() != 0 {
		t.Skip("containers of another user than this one need root: run the test as root, as CI does")
	}
	images, err := imageDir()
	if err != nil {
		t.Fatal(images, err)
	}
	for name, tests := range map[string]string{
		"contract":   "^TestContract$/^(restarts|exits|exec|attach|port-forward|settings)$",
		"containers": "^(TestContainer|TestAnother|TestKilled|TestDaemon|TestSignal|TestImage|TestANetworkThatIsLost|TestTerminalEnds|TestAttachTwice|TestCommand|TestSecurityE12)",
		"attacks":    "^TestSecurityJ",
		"sandbox":    "^TestGVisor",
		"network":    "^(TestSecurityK|TestNetworkProcess|TestHostPort|TestAddresses|TestPortOf)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", tests, "-test.v")
			cmd.Env = append(os.Environ(), isolationEnv+"="+process.IsolationGVisor, runtimeEnv+"="+program, "PROCESS_IMAGES="+images)
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "\n--- PASS: Test") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	t.Run("without root", func(t *testing.T) {
		t.Parallel()
		out, err := asUser(t, "^(TestContainerRuns|TestExec|TestStop|TestTerminalOf|TestAttachWith|TestKilled|TestPortOf|TestSecurityK|TestNetworkProcess|TestHostPort|TestStats|TestUserOf|TestLog|TestSecurityJ9|TestSecurityE12)",
			isolationEnv+"="+process.IsolationGVisor, runtimeEnv+"="+readable(t, program))
		if strings.Contains(string(out), "a sandbox cannot be made") {
			t.Skipf("the kernel gives users no namespaces: %s", out)
		}
		if err != nil || !strings.Contains(string(out), "\n--- PASS: Test") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// readable returns a path of the program that every user may run.
func readable(t *testing.T, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "vk-runsc-") //nolint:usetesting // parents of t.TempDir are closed to the other user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "runsc")
	if err := errors.Join(os.WriteFile(path, data, 0o755), os.Chmod(dir, 0o755)); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return path
}

// onGVisor marks a test that needs gVisor, and skips it unless TestOnGVisor runs it.
func onGVisor(t *testing.T) {
	t.Helper()
	if os.Getenv(isolationEnv) != process.IsolationGVisor {
		t.Skip("TestOnGVisor runs it")
	}
}

func (w *world) pod(change func(*runtimeapi.PodSandboxConfig)) (string, error) {
	w.t.Helper()
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "q", Namespace: "default", Uid: "u2"}, LogDirectory: w.logs, Hostname: "pod-2",
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{}}},
	}
	change(config)
	id, err := w.RunPodSandbox(w.t.Context(), config, "")
	if err == nil {
		w.t.Cleanup(func() {
			if err := w.RemovePodSandbox(context.WithoutCancel(w.t.Context()), id); err != nil {
				w.t.Error(err)
			}
		})
	}
	return id, err
}

// TestGVisorIsTheDefault checks that gVisor is the default, and that a machine without gVisor does not silently
// get another isolation.
func TestGVisorIsTheDefault(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	for _, isolation := range []string{"", process.IsolationGVisor} {
		_, err := process.Open(t.Context(), process.Config{StateDir: t.TempDir(), Isolation: isolation}, "n1", "192.0.2.1")
		for _, want := range []string{"isolation gvisor", "/nowhere", "make runsc", "isolation: runc", "isolation: none"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("isolation %q: got %v, want %s in it", isolation, err, want)
			}
		}
	}
}

// TestGVisorIsTheKernelOfAPod checks that the kernel of a pod is neither the machine's nor another pod's.
func TestGVisorIsTheKernelOfAPod(t *testing.T) {
	onGVisor(t)
	w := open(t, nil)
	id := w.run("main", nil, "sleep", "600")
	if out, _, err := w.ExecSync(t.Context(), id, []string{"cat", "/proc/version"}, time.Minute); err != nil || !strings.Contains(string(out), "gvisor") {
		t.Errorf("the kernel: got %q, %v", out, err)
	}
	other, err := w.pod(func(*runtimeapi.PodSandboxConfig) {})
	if err != nil {
		t.Fatal(err)
	}
	if w.sandboxProcess(w.sandbox) == w.sandboxProcess(other) {
		t.Error("two pods have one sandbox")
	}
}

// sandboxProcess returns the process of the machine that runs the sandbox.
func (w *world) sandboxProcess(sandbox string) shim.Process {
	w.t.Helper()
	state, err := shim.ReadState(filepath.Join(w.config.StateDir, "sandboxes", sandbox, "sandbox"))
	if err != nil || !state.Init.Alive() {
		w.t.Fatalf("the sandbox of a pod: got %+v, %v", state, err)
	}
	return state.Init
}

// TestSecurityJ8WhatGVisorCannotCarryIsRefused checks that a pod is refused if gVisor cannot give it everything
// that it asks for.
func TestSecurityJ8WhatGVisorCannotCarryIsRefused(t *testing.T) {
	onGVisor(t)
	w := open(t, func(c *process.Config) { c.Privileged = true })
	for name, change := range map[string]func(*runtimeapi.PodSandboxConfig){
		"privileged": func(c *runtimeapi.PodSandboxConfig) { c.Linux.SecurityContext.Privileged = true },
		"hostPID": func(c *runtimeapi.PodSandboxConfig) {
			c.Linux.SecurityContext.NamespaceOptions.Pid = runtimeapi.NamespaceMode_NODE
		},
		"hostIPC": func(c *runtimeapi.PodSandboxConfig) {
			c.Linux.SecurityContext.NamespaceOptions.Ipc = runtimeapi.NamespaceMode_NODE
		},
		"sysctl": func(c *runtimeapi.PodSandboxConfig) {
			c.Linux.Sysctls = map[string]string{"kernel.shm_rmid_forced": "1"}
		},
	} {
		if _, err := w.pod(change); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	dir := t.TempDir()
	for name, change := range map[string]func(*runtimeapi.ContainerConfig){
		"privileged": func(c *runtimeapi.ContainerConfig) { c.Linux.SecurityContext.Privileged = true },
		"device": func(c *runtimeapi.ContainerConfig) {
			c.Devices = []*runtimeapi.Device{{HostPath: "/dev/null", ContainerPath: "/dev/x"}}
		},
		"propagation": func(c *runtimeapi.ContainerConfig) {
			c.Mounts = []*runtimeapi.Mount{{HostPath: dir, ContainerPath: "/v", Propagation: runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER}}
		},
		"hostPID": func(c *runtimeapi.ContainerConfig) {
			c.Linux.SecurityContext.NamespaceOptions = &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_NODE}
		},
	} {
		if _, err := w.tryRun("c-"+name, change, "sleep", "1"); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), name) {
			t.Errorf("a container, %s: got %v", name, err)
		}
	}
}

// TestGVisorMountsReadOnly checks that a read-only volume is read-only with all mounts below it, and that every
// read-only mount behaves like that.
func TestGVisorMountsReadOnly(t *testing.T) {
	onGVisor(t)
	w := open(t, nil)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // that it cannot be written must have another reason
		t.Fatal(err)
	}
	for _, recursive := range []bool{false, true} {
		name := map[bool]string{false: "plain", true: "recursive"}[recursive]
		id := w.run(name, func(c *runtimeapi.ContainerConfig) {
			shell(c)
			c.Mounts = append(c.Mounts, &runtimeapi.Mount{HostPath: dir, ContainerPath: "/v", Readonly: true, RecursiveReadOnly: recursive})
		}, "/busybox", "sleep", "600")
		if said := w.in(id, "/busybox touch /v/made"); !strings.Contains(said, "Read-only") || exists(filepath.Join(dir, "made")) {
			t.Errorf("%s: got %s", name, said)
		}
	}
}

// TestGVisorEndsWithItsSandbox checks that a pod whose sandbox was killed has no containers left, and is made
// again.
func TestGVisorEndsWithItsSandbox(t *testing.T) {
	onGVisor(t)
	w := open(t, nil)
	id := w.run("main", nil, "sleep", "600")
	if err := shim.KillProcess(w.sandboxProcess(w.sandbox)); err != nil {
		t.Fatal(err)
	}
	if s := w.ended(id); s.GetExitCode() != 137 {
		t.Errorf("its container: got %v", s)
	}
	w.until("a sandbox that is not ready", func() bool {
		s, err := w.PodSandboxStatus(t.Context(), w.sandbox, false)
		return err == nil && s.GetStatus().GetState() == runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	})
	if _, err := w.tryRun("late", nil, "sleep", "600"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("another container: got %v", err)
	}
}

// TestGVisorKeepsTheLimitOfAPod checks that the control group of the pod counts the usage of its containers.
func TestGVisorKeepsTheLimitOfAPod(t *testing.T) {
	onGVisor(t)
	w := open(t, nil)
	w.needLimits()
	name := "limited" + mine
	t.Cleanup(func() { removeCgroups(name) })
	for _, group := range groupsOf(t, w.sandbox) {
		dir := filepath.Join(filepath.Dir(group), name)
		if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // as the kernel makes them
			t.Fatal(err)
		}
		for file, value := range map[string]string{"cgroup.subtree_control": "+memory +cpu +pids", "memory.max": "134217728", "memory.limit_in_bytes": "134217728"} {
			if exists(filepath.Join(dir, file)) {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	pod, err := w.pod(func(c *runtimeapi.PodSandboxConfig) { c.Linux.CgroupParent = name })
	if err != nil {
		t.Fatal(err)
	}
	first := w.sandbox
	w.sandbox = pod
	defer func() { w.sandbox = first }()
	little := w.run("little", nil, "sleep", "600")
	for what, p := range map[string]shim.Process{"the sandbox": w.sandboxProcess(pod), "what opens the files of a container": w.state(little).Init} {
		group, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/cgroup")
		if err != nil || !strings.Contains(string(group), name+"/vk-"+pod) {
			t.Errorf("%s is in %s, %v", what, group, err)
		}
	}
	id := w.run("main", nil, "eat", "512")
	if s := w.ended(id); s.GetExitCode() != 137 {
		t.Errorf("a container that takes more than its pod may: got %v", s)
	} else {
		t.Logf("it ended by %s: %s", s.GetReason(), s.GetMessage())
	}
}

// TestGVisorHasTheNetworkOfAPod checks that the address of a pod answers, that its containers reach each other
// over the loopback interface, and that a forwarded port answers.
func TestGVisorHasTheNetworkOfAPod(t *testing.T) {
	onGVisor(t)
	file, _ := network(t)
	w := open(t, func(c *process.Config) { c.PodNetwork, c.CNIPlugins = file, []string{"/usr/lib/cni"} })
	w.run("server", serves)
	address := w.address(w.sandbox)
	w.answers(net.JoinHostPort(address, "8080"))
	other := w.run("other", shell, "/busybox", "sleep", "600")
	if said := w.in(other, "/busybox wget -q -O /dev/null http://127.0.0.1:8080/ && echo reached"); !strings.Contains(said, "reached") {
		t.Errorf("another container of the pod: got %s", said)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.reopen()
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- w.StreamPort(t.Context(), w.sandbox, 8080, far) }()
	if _, err := io.WriteString(near, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 15)
	if _, err := io.ReadFull(near, line); err != nil || string(line) != "HTTP/1.0 200 OK" {
		t.Errorf("through a forwarded port: got %q, %v", line, err)
	}
	near.Close()
	<-ended //nolint:errcheck // how it ended does not matter
}

// TestGVisorLeavesNothing checks that no mount, no control group, no process and no text in memory is left,
// however a pod ended.
func TestGVisorLeavesNothing(t *testing.T) {
	onGVisor(t)
	for name, end := range map[string]func(t *testing.T, w *world, state, supervisor shim.State) error{
		"it ends": func(*testing.T, *world, shim.State, shim.State) error { return nil },
		"both are killed": func(t *testing.T, w *world, _, _ shim.State) error {
			w.EndSandbox(w.sandbox)
			all, err := w.ListContainers(t.Context(), nil)
			if err != nil || len(all) != 1 {
				return fmt.Errorf("the containers: %v, %w", all, err)
			}
			return w.StopContainer(t.Context(), all[0].GetId(), 0)
		},
		"its supervisor dies": func(_ *testing.T, _ *world, state, _ shim.State) error { return shim.KillProcess(state.Shim) },
		"the sandbox's dies":  func(_ *testing.T, _ *world, _, supervisor shim.State) error { return shim.KillProcess(supervisor.Shim) },
		"both and the sandbox": func(_ *testing.T, _ *world, state, supervisor shim.State) error {
			return errors.Join(shim.KillProcess(state.Shim), shim.KillProcess(supervisor.Shim), shim.KillProcess(supervisor.Init))
		},
		"the pod's record fails": func(_ *testing.T, w *world, _, _ shim.State) error {
			return os.Truncate(filepath.Join(w.config.StateDir, "sandboxes", w.sandbox, "record.json"), 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, nil)
			id := w.run("main", nil, "sleep", "603")
			state := w.state(id)
			supervisor, err := shim.ReadState(filepath.Join(w.config.StateDir, "sandboxes", w.sandbox, "sandbox"))
			if err != nil {
				t.Fatal(err)
			}
			if err := end(t, w, state, supervisor); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.reopen()
			if err := w.RemovePodSandbox(t.Context(), w.sandbox); err != nil {
				t.Fatal(err)
			}
			for what, p := range map[string]shim.Process{"container": state.Init, "supervisor": state.Shim, "sandbox": supervisor.Init, "its supervisor": supervisor.Shim} {
				w.until("the end of the "+what, func() bool { return !p.Alive() })
			}
			if mounted(t, w.container(id)) {
				t.Error("a root is mounted")
			}
			for _, of := range []string{id, w.sandbox} {
				if left := groupsOf(t, of); len(left) != 0 {
					t.Errorf("its groups are there: %v", left)
				}
				for _, memory := range []string{"/run", "/dev/shm"} {
					if found, err := filepath.Glob(memory + "/vk-process-*/*/*" + of[:16] + "*"); err != nil || len(found) != 0 {
						t.Errorf("in memory is left: %v, %v", found, err)
					}
				}
			}
		})
	}
}
