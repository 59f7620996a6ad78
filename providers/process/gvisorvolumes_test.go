// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// memoryVolume mounts a file system of one mebibyte in memory that belongs to a group.
func memoryVolume(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "volume")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=2770,gid=4242"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func (w *world) podWith(volumes ...string) string {
	w.t.Helper()
	named, err := json.Marshal(volumes)
	if err != nil {
		w.t.Fatal(err)
	}
	pod, err := w.pod(func(c *runtimeapi.PodSandboxConfig) {
		c.Annotations = map[string]string{podruntime.SandboxVolumesAnnotation: string(named)}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return pod
}

// TestGVisorHasVolumesInMemory checks that a volume in memory looks to programs like the machine's file system
// in memory, and that containers share the volume.
func TestGVisorHasVolumesInMemory(t *testing.T) {
	onGVisor(t)
	w := open(t, nil)
	kept, other := memoryVolume(t), memoryVolume(t)
	defer func(first string) { w.sandbox = first }(w.sandbox)
	w.sandbox = w.podWith(kept, t.TempDir())
	mount := func(readOnly bool) func(*runtimeapi.ContainerConfig) {
		return func(c *runtimeapi.ContainerConfig) {
			shell(c)
			c.Mounts = append(c.Mounts, &runtimeapi.Mount{HostPath: kept, ContainerPath: "/v", Readonly: readOnly}, &runtimeapi.Mount{HostPath: other, ContainerPath: "/other"})
		}
	}
	first, second := w.run("first", mount(false), "sleep", "600"), w.run("second", mount(true), "sleep", "600")
	for _, step := range []struct{ in, script, want string }{
		{first, "/busybox stat -f -c %t /v /other", "1021994\n1021997\n"}, // in memory, and a directory of the machine,
		{first, "/busybox stat -c '%a %u %g' /v", "2770 0 4242"},
		{first, "/busybox df -k /v | /busybox awk 'NR==2 {print $2}'", "1024\n"},
		{first, "echo shared >/v/file; /busybox stat -c %g /v/file", "4242"},
		{second, "/busybox cat /v/file", "shared"},
		{second, "echo no >/v/file", "Read-only file system"},
		{first, "/busybox dd if=/dev/zero of=/v/much bs=1k count=2048; /busybox rm /v/much", "No space left"},
		{first, "echo machine >/other/file", ""},
	} {
		if got := w.in(step.in, step.script); !strings.Contains(got, step.want) {
			t.Errorf("%s: got %q, want %q in it", step.script, got, step.want)
		}
	}
	if said, err := os.ReadFile(filepath.Join(other, "file")); err != nil || string(said) != "machine\n" {
		t.Errorf("a volume that is not the sandbox's: got %q, %v", said, err)
	}
	// The end of a container loses no data.
	if err := w.StopContainer(t.Context(), first, 0); err != nil {
		t.Fatal(err)
	}
	if got := w.in(w.run("again", mount(false), "sleep", "600"), "/busybox cat /v/file"); !strings.Contains(got, "shared") {
		t.Errorf("after a restart: got %q", got)
	}
}

// TestGVisorLeavesNothingInAVolume checks that data that a sandbox kept in memory is freed with the sandbox, so
// that the next sandbox of the pod has the whole volume.
func TestGVisorLeavesNothingInAVolume(t *testing.T) {
	onGVisor(t)
	for name, end := range map[string]func(w *world, supervisor shim.State) error{
		"it ends":             func(*world, shim.State) error { return nil },
		"it is killed":        func(_ *world, supervisor shim.State) error { return shim.KillProcess(supervisor.Init) },
		"its supervisor dies": func(_ *world, supervisor shim.State) error { return shim.KillProcess(supervisor.Shim) },
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, nil)
			volume := memoryVolume(t)
			pod := w.podWith(volume)
			defer func(first string) { w.sandbox = first }(w.sandbox)
			w.sandbox = pod
			w.run("main", func(c *runtimeapi.ContainerConfig) {
				c.Mounts = append(c.Mounts, &runtimeapi.Mount{HostPath: volume, ContainerPath: "/v"})
			}, "sleep", "600")
			if in, err := os.ReadDir(volume); err != nil || len(in) == 0 {
				t.Fatalf("the machine sees nothing of it: %v, %v", in, err)
			}
			supervisor, err := shim.ReadState(filepath.Join(w.config.StateDir, "sandboxes", pod, "sandbox"))
			if err != nil {
				t.Fatal(err)
			}
			if err := end(w, supervisor); err != nil {
				t.Fatal(err)
			}
			if err := w.StopPodSandbox(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			if in, err := os.ReadDir(volume); err != nil || len(in) != 0 {
				t.Errorf("got %v, %v", in, err)
			}
		})
	}
}
