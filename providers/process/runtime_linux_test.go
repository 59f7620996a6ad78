// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// isolationEnv is the environment variable with the isolation for testConfig.
const isolationEnv = "PROCESS_ISOLATION"

// needRunc skips a test if there is no runc, or if the test may not use it.
func needRunc(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("runc needs the rights of root")
	}
	if _, err := exec.LookPath("runc"); err != nil {
		if os.Getenv("VK_REQUIRE_CONTAINERD") != "" {
			t.Fatal(err)
		}
		t.Skip("runc is not there; install the package runc")
	}
}

func onRunc(c *process.Config) { c.Isolation = process.IsolationRunc }

func TestARuntimeThatIsNotThere(t *testing.T) {
	if os.Geteuid() != 0 {
		_, err := process.Open(t.Context(), process.Config{StateDir: t.TempDir(), Isolation: process.IsolationRunc}, "n1", "192.0.2.1")
		if err == nil || !strings.Contains(err.Error(), "rights of root") {
			t.Errorf("as a user: got %v", err)
		}
		return
	}
	t.Setenv("PATH", "/nowhere")
	old := filepath.Join(t.TempDir(), "crun")
	if err := os.WriteFile(old, []byte("#!/bin/sh\necho crun version 1.8.1\necho commit: f8a096b\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	for _, tt := range []struct {
		config process.Config
		want   []string
	}{
		{process.Config{Isolation: process.IsolationRunc}, []string{"isolation runc", "/nowhere", "install the package runc"}},
		{process.Config{Isolation: process.IsolationCrun, RuntimePath: "/nowhere/crun"}, []string{"isolation crun", "runtimePath", "/nowhere/crun"}},
		{process.Config{Isolation: process.IsolationCrun, RuntimePath: old}, []string{old, "crun 1.8.1", "1.14.1 or newer"}},
		{process.Config{Isolation: process.IsolationRunc, RuntimePath: old}, []string{old, "crun 1.8.1"}}, // under any name
		{process.Config{Isolation: process.IsolationNone, RuntimePath: "/usr/sbin/runc"}, []string{"runtimePath", "isolation none"}},
		{process.Config{Isolation: "kata"}, []string{`"kata"`, "gvisor", "runc", "crun", "none"}},
	} {
		tt.config.StateDir = t.TempDir()
		_, err := process.Open(t.Context(), tt.config, "n1", "192.0.2.1")
		if err == nil {
			t.Errorf("%+v: got no error", tt.config)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: got %v, want %s in it", tt.config, err, want)
			}
		}
	}
}

// TestARuntimeThatCannotIsAnError checks that a broken runtime is an error, and that no weaker isolation is used
// instead.
func TestARuntimeThatCannotIsAnError(t *testing.T) {
	needRunc(t)
	for script, want := range map[string][]string{
		"exit 3": {"it ended with code 3", "isolation: none"},
		// The script fails like crun on a machine with hybrid cgroups. The fourth argument is the log.
		`echo '{"msg":"cgroups in hybrid mode not supported, drop all controllers from cgroupv2","level":"error"}' > "$4"; exit 1`: {
			"hybrid mode not supported", "systemd.unified_cgroup_hierarchy=1", "isolation: gvisor or runc",
		},
	} {
		program := filepath.Join(t.TempDir(), "runtime")
		script = "#!/bin/sh\nif [ \"$1\" = --version ]; then echo crun version 1.21; exit 0; fi\n" + script + "\n"
		if err := os.WriteFile(program, []byte(script), 0o755); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		_, err := process.Open(t.Context(), process.Config{StateDir: t.TempDir(), Isolation: process.IsolationCrun, RuntimePath: program}, "n1", "192.0.2.1")
		for _, want := range append(want, program) {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s in it", script, err, want)
			}
		}
	}
}

// TestNothingOfAContainerIsLeft checks that no mount, no control group and no text in memory is left, however a
// container ended.
func TestNothingOfAContainerIsLeft(t *testing.T) {
	needRunc(t)
	for name, end := range map[string]func(w *world, id string, state shim.State) error{
		"it ends":             func(w *world, id string, _ shim.State) error { return w.StopContainer(t.Context(), id, 0) },
		"its supervisor dies": func(_ *world, _ string, state shim.State) error { return shim.KillProcess(state.Shim) },
		"all of them die": func(_ *world, _ string, state shim.State) error {
			return errors.Join(shim.KillProcess(state.Shim), shim.KillProcess(state.Init))
		},
		"the record fails": func(w *world, id string, _ shim.State) error {
			return os.Truncate(filepath.Join(w.container(id), "record.json"), 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, onRunc)
			id := w.run("main", func(c *runtimeapi.ContainerConfig) {
				c.Linux.SecurityContext.NamespaceOptions = &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_NODE}
			}, "sleep", "603")
			state := w.state(id)
			groups := groupsOf(t, id)
			if !mounted(t, w.container(id)) || len(groups) == 0 {
				t.Fatalf("while it runs there is no mount or no group of it: %v", groups)
			}
			if err := end(w, id, state); err != nil {
				t.Fatal(err)
			}
			if name != "it ends" { // otherwise the daemon has nothing to do
				if err := w.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.reopen()
			}
			w.until("the end of its processes", func() bool { return !state.Init.Alive() && !state.Shim.Alive() })
			if mounted(t, w.container(id)) {
				t.Error("its root is mounted")
			}
			if left := groupsOf(t, id); len(left) != 0 {
				t.Errorf("its groups are there: %v", left)
			}
			for _, memory := range []string{"/run", "/dev/shm"} {
				if found, err := filepath.Glob(memory + "/vk-process-*/*/" + id[:16] + "*"); err != nil || len(found) != 0 {
					t.Errorf("in memory is left: %v, %v", found, err)
				}
			}
			if err := w.RemoveContainer(t.Context(), id); err != nil {
				t.Error(err)
			}
		})
	}
}

func mounted(t *testing.T, dir string) bool {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(data), " "+dir+"/")
}

// groupsOf returns the control groups of a container in all hierarchies.
func groupsOf(t *testing.T, id string) []string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for _, parent := range []string{filepath.Join("/sys/fs/cgroup", fields[1], fields[2]), filepath.Join("/sys/fs/cgroup", fields[2])} {
			if dir := filepath.Join(parent, "vk-"+id); exists(dir) && !slices.Contains(found, dir) {
				found = append(found, dir)
			}
		}
	}
	return found
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestSystemCallsAreFilteredForThoseWhoAsk checks that only containers that request a seccomp profile have one,
// as with a kubelet.
func TestSystemCallsAreFilteredForThoseWhoAsk(t *testing.T) {
	needRunc(t)
	w := open(t, onRunc)
	for name, want := range map[runtimeapi.SecurityProfile_ProfileType]string{
		runtimeapi.SecurityProfile_RuntimeDefault: "Seccomp:\t2", runtimeapi.SecurityProfile_Unconfined: "Seccomp:\t0",
	} {
		id := w.run(name.String(), func(c *runtimeapi.ContainerConfig) {
			c.Linux.SecurityContext.Seccomp = &runtimeapi.SecurityProfile{ProfileType: name}
		}, "sleep", "600")
		out, _, err := w.ExecSync(t.Context(), id, []string{"cat", "/proc/1/status", "/proc/self/status"}, time.Minute)
		if err != nil || strings.Count(string(out), want+"\n") != 2 {
			t.Errorf("%s: got %s, %v, want %q of the container and of the command", name, out, err, want)
		}
	}
}

// TestMountsByDepth checks that a volume over the parent directory of another volume does not hide that volume.
func TestMountsByDepth(t *testing.T) {
	needRunc(t)
	w := open(t, onRunc)
	outer, inner := t.TempDir(), t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(outer, "inner"), 0o755), os.WriteFile(filepath.Join(inner, "file"), []byte("inner"), 0o644)); err != nil { //nolint:gosec // a container reads them
		t.Fatal(err)
	}
	w.ended(w.run("main", func(c *runtimeapi.ContainerConfig) {
		c.Mounts = []*runtimeapi.Mount{{HostPath: inner, ContainerPath: "/v/inner"}, {HostPath: outer, ContainerPath: "/v"}}
	}, "cat", "/v/inner/file"))
	if got := w.log("main"); got != "stdout P inner" {
		t.Errorf("got %q", got)
	}
}

// TestMountsReachTheMachine checks the propagation of mounts that a volume asks for: mounts of the container
// reach the machine, and mounts of the machine reach the container.
func TestMountsReachTheMachine(t *testing.T) {
	needRunc(t)
	w := open(t, onRunc)
	dir := t.TempDir()
	if err := errors.Join(unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"), unix.Mount("", dir, "", unix.MS_SHARED, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unmount(dir); err != nil {
			t.Error(err)
		}
	})
	id := w.run("main", func(c *runtimeapi.ContainerConfig) {
		c.Mounts = []*runtimeapi.Mount{
			{HostPath: dir, ContainerPath: "/v", Propagation: runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL},
			{HostPath: "/bin/busybox", ContainerPath: "/busybox", Readonly: true},
		}
		c.Linux.SecurityContext.Privileged = true
	}, "sleep", "600")
	script := "/busybox mkdir /v/a && /busybox mount -t tmpfs tmpfs /v/a && /busybox touch /v/a/made"
	if out, stderr, err := w.ExecSync(context.WithoutCancel(t.Context()), id, []string{"/busybox", "sh", "-c", script}, time.Minute); err != nil {
		t.Fatalf("%s%s%v", out, stderr, err)
	}
	if !exists(filepath.Join(dir, "a", "made")) {
		t.Error("what the container mounted is not on the machine")
	}
	_ = unmount(filepath.Join(dir, "a"))
}
