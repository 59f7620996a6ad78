// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// TestASandboxHasVolumesInMemory checks that only the configuration of the sandbox has the memory volumes, once
// for all of its containers, and that each container has its own OOM score.
func TestASandboxHasVolumesInMemory(t *testing.T) {
	spec := &shim.Spec{Argv: []string{"x"}, OOMScoreAdj: 300, OCI: &shim.OCI{ID: "s", Sandbox: "s", RootImage: "/d/image", Volumes: []shim.MemoryVolume{
		{Dir: "/a", Mode: 0o2770, GID: 42, Size: 4096}, {Dir: "/b", Mode: 0o777, UID: 7, Size: 8192},
	}}}
	read := func() (got specs.Spec) {
		data, err := Config(spec, "/root", nil)
		if err == nil {
			err = json.Unmarshal(data, &got)
		}
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := read()
	for key, want := range map[string]string{
		"v0.source": "/a", "v0.type": "tmpfs", "v0.share": "pod", "v0.options": "rw,mode=2770,uid=0,gid=42,size=4096",
		"v1.source": "/b", "v1.options": "rw,mode=777,uid=7,gid=0,size=8192",
	} {
		if got := got.Annotations[volumeAnnotation+key]; got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	if got.Annotations[rootAnnotation+"type"] != "erofs" || got.Annotations[rootAnnotation+"source"] != "/d/image" {
		t.Errorf("the root of the sandbox: got %v", got.Annotations)
	}
	if got.Process.OOMScoreAdj != nil {
		t.Errorf("the score of the sandbox: got %d, want that of its containers", *got.Process.OOMScoreAdj)
	}
	spec.OCI.ID, spec.OCI.Volumes, spec.OCI.RootImage = "c", nil, ""
	if got = read(); len(got.Annotations) != 2 || got.Process.OOMScoreAdj == nil || *got.Process.OOMScoreAdj != 300 {
		t.Errorf("a container: got %v, the score %v", got.Annotations, got.Process.OOMScoreAdj)
	}
}

// TestAGuestHasAsManyMountsAsItsStartCanSend checks the limit of mounts. The mounts that show a container its
// limits count too.
func TestAGuestHasAsManyMountsAsItsStartCanSend(t *testing.T) {
	spec := &shim.Spec{Argv: []string{"x"}, OCI: &shim.OCI{ID: "c", Sandbox: "s"}, Cgroup: shim.Cgroup{V2: "/sys/fs/cgroup/pod/vk-c"}}
	for i := range MaxGuestMounts - 1 {
		spec.Mounts = append(spec.Mounts, shim.Mount{Source: "/a", Target: fmt.Sprintf("/v%d", i)})
	}
	if _, err := Config(spec, "/root", nil); err != nil {
		t.Errorf("with as many as there can be: %v", err)
	}
	spec.Mounts = append(spec.Mounts, shim.Mount{Source: "/a", Target: "/more"})
	if _, err := Config(spec, "/root", nil); err == nil || !strings.Contains(err.Error(), "at most 124 files and directories of the machine, and this one has 125") {
		t.Errorf("with one more: got %v", err)
	}
}

// TestAGuestHasNothingOfTheMachine checks that a container in a sandbox has no control group and no device of
// the machine, and no option that the sandbox's kernel ignores.
func TestAGuestHasNothingOfTheMachine(t *testing.T) {
	spec := &shim.Spec{
		Argv: []string{"x"}, OCI: &shim.OCI{ID: "c", Sandbox: "s", PIDs: "p"}, Cgroup: shim.Cgroup{V2: "/sys/fs/cgroup/pod/vk-c"},
		Mounts: []shim.Mount{{Source: "/a", Target: "/v", ReadOnly: true, RecursiveReadOnly: true}},
	}
	data, err := Config(spec, "/root", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got specs.Spec
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Annotations[kindAnnotation] != "container" || got.Annotations[sandboxAnnotation] != "s" {
		t.Errorf("annotations: got %v", got.Annotations)
	}
	if got.Linux.CgroupsPath != "" || got.Linux.Resources != nil || len(got.Linux.Devices) != 0 {
		t.Errorf("got %+v", got.Linux)
	}
	for _, want := range []string{"/v", "/sys/fs/cgroup"} {
		at := slices.IndexFunc(got.Mounts, func(m specs.Mount) bool { return m.Destination == want })
		if at < 0 || got.Mounts[at].Type != "bind" || !slices.Contains(got.Mounts[at].Options, "ro") || slices.Contains(got.Mounts[at].Options, "rro") {
			t.Errorf("mount at %s: got %+v", want, got.Mounts)
		}
	}
	for name, change := range map[string]func(*shim.Spec){
		"privileged":  func(s *shim.Spec) { s.Privileged = true },
		"hostPID":     func(s *shim.Spec) { s.HostPID = true },
		"hostIPC":     func(s *shim.Spec) { s.HostIPC = true },
		"sysctls":     func(s *shim.Spec) { s.Sysctls = map[string]string{"a": "b"} },
		"device":      func(s *shim.Spec) { s.Mounts = []shim.Mount{{Source: "/dev/null", Target: "/x", Device: true}} },
		"propagation": func(s *shim.Spec) { s.Mounts = []shim.Mount{{Source: "/a", Target: "/x", Slave: true}} },
	} {
		asks := *spec
		change(&asks)
		if _, err := Config(&asks, "/root", nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestPauseRunsUntilItIsKilled runs the pause program on the machine, as it runs in a sandbox.
func TestPauseRunsUntilItIsKilled(t *testing.T) {
	if _, err := Pause("s390x"); err == nil {
		t.Error("an architecture without gVisor: got no error")
	}
	program, err := Pause(runtime.GOARCH)
	if err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "pause")
	if err := os.WriteFile(path, program, 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("it ended by itself: %v", err)
	}
}
