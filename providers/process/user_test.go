// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// asUser runs tests as an unprivileged user.
func asUser(t *testing.T, tests string, env ...string) ([]byte, error) {
	t.Helper()
	images, err := imageDir()
	if err != nil {
		t.Fatal(images, err)
	}
	binary := filepath.Join(images, "process.test")
	data, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(binary, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "vk-user-") //nolint:usetesting // parents of t.TempDir are closed to the other user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	if err := os.Chown(home, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.run", tests, "-test.v")
	cmd.Dir, cmd.Env = home, append(os.Environ(), "TMPDIR="+home, "HOME="+home, "PROCESS_IMAGES="+images)
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return cmd.CombinedOutput()
}

func TestUserOfTheContainer(t *testing.T) {
	w := open(t, nil)
	w.ended(w.run("id", func(c *runtimeapi.ContainerConfig) {
		c.Linux.SecurityContext.RunAsUser = &runtimeapi.Int64Value{Value: 1234}
		c.Linux.SecurityContext.RunAsGroup = &runtimeapi.Int64Value{Value: 5678}
		c.Linux.SecurityContext.SupplementalGroups = []int64{77}
	}, "id"))
	want := "stdout F uid=1234 gid=5678 groups=[77 5678]"
	if os.Geteuid() != 0 {
		want = "stdout F uid=1234 gid=5678 groups=[5678]"
	}
	if got := w.log("id"); got != want && (os.Geteuid() == 0 || got[:len("stdout F uid=1234 gid=5678")] != want[:len("stdout F uid=1234 gid=5678")]) {
		t.Errorf("got %q, want %q", got, want)
	}
	caps := map[string]string{}
	for name, security := range map[string]*runtimeapi.LinuxContainerSecurityContext{
		"user": {RunAsUser: &runtimeapi.Int64Value{Value: 1}},
		"none": {Capabilities: &runtimeapi.Capability{DropCapabilities: []string{"ALL"}}, NoNewPrivs: true},
		"one":  {Capabilities: &runtimeapi.Capability{DropCapabilities: []string{"ALL"}, AddCapabilities: []string{"CHOWN"}}},
	} {
		w.ended(w.run(name, func(c *runtimeapi.ContainerConfig) { c.Linux.SecurityContext = security }, "cat", "/proc/self/status"))
		caps[name] = w.log(name)
	}
	for name, want := range map[string]string{"user": "CapEff:\t0000000000000000", "none": "CapEff:\t0000000000000000", "one": "CapEff:\t0000000000000001"} {
		if !bytes.Contains([]byte(caps[name]), []byte(want)) {
			t.Errorf("%s: got %s, want %s", name, caps[name], want)
		}
	}
	if !bytes.Contains([]byte(caps["none"]), []byte("NoNewPrivs:\t1")) {
		t.Error("no_new_privs is not set")
	}
}

// TestContainerSeesNothingOfTheMachine looks for traces of the machine from inside a container.
func TestContainerSeesNothingOfTheMachine(t *testing.T) {
	w := open(t, nil)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{secret, "/../../../../.." + secret, "/proc/1/root" + secret, "/proc/1/cwd/../../../.." + secret} {
		if s := w.ended(w.run("cat"+filepath.Base(filepath.Dir(path)), func(c *runtimeapi.ContainerConfig) { c.LogPath = "" }, "cat", path)); s.GetExitCode() == 0 {
			t.Errorf("%s can be read", path)
		}
	}
	mounted := t.TempDir()
	_, err := w.tryRun("mount", func(c *runtimeapi.ContainerConfig) {
		c.Mounts = []*runtimeapi.Mount{{HostPath: mounted, ContainerPath: "/proc/sys"}}
	}, "ls", "/")
	if err == nil || !strings.Contains(err.Error(), "nothing may be mounted") {
		t.Errorf("a mount over /proc: got %v", err)
	}
}
