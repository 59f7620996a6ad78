// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oci"
)

// held runs a script in place of the runtime. It returns the error in the log of the call, or the output of the
// script.
func held(t *testing.T, spec Spec, script string) string {
	t.Helper()
	dir := t.TempDir()
	bundle, root := filepath.Join(dir, "bundle"), filepath.Join(dir, "state")
	if err := errors.Join(os.Mkdir(bundle, 0o700), os.Mkdir(root, 0o700), os.Mkdir(filepath.Join(dir, rootDir), 0o700), os.Mkdir(filepath.Join(bundle, "call"), 0o700)); err != nil {
		t.Fatal(err)
	}
	spec.OCI = &OCI{Bundle: bundle, Sandbox: "s", ID: "c", Runtime: oci.Runtime{Root: root}}
	call := oci.Call{Dir: filepath.Join(bundle, "call"), Argv: []string{"/bin/sh", "-c", script}}
	call, err := (&supervisor{spec: spec}).holdFirst(call)
	if err != nil {
		t.Fatal(err)
	}
	if call.Before == nil {
		t.Fatal("nothing is opened before the runtime runs")
	}
	cmd := exec.CommandContext(t.Context(), ownPath())
	cmd.Args, cmd.Dir, cmd.SysProcAttr = slices.Concat(call.Before, call.Argv), dir, &syscall.SysProcAttr{}
	ownMounts(cmd.SysProcAttr)
	out, err := cmd.CombinedOutput()
	said, logged := call.Errors()
	if errors.Is(err, unix.EPERM) || strings.Contains(strings.Join(said, ""), unix.EPERM.Error()) {
		t.Skipf("this needs namespaces: %v, %q", err, said)
	}
	if logged != nil {
		t.Fatal(logged)
	}
	return strings.Join(said, "") + string(out)
}

// TestSecurityJ9TheRuntimeHasWhatWasOpened checks that the runtime mounts the opened file, even if a container
// replaces it later, and that no mount of it is left on the machine.
func TestSecurityJ9TheRuntimeHasWhatWasOpened(t *testing.T) {
	volume, outside := t.TempDir(), t.TempDir()
	d := filepath.Join(volume, "d")
	if err := errors.Join(os.Mkdir(d, 0o755), os.WriteFile(filepath.Join(d, "inside"), nil, 0o600), os.WriteFile(filepath.Join(outside, "precious"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	spec := Spec{Mounts: []Mount{{Source: outside, Target: "/other"}, {Source: volume, Target: "/v", Way: "d"}}}
	swap := "mv " + d + " " + d + ".was; ln -s " + outside + " " + d + "; "
	if said := held(t, spec, swap+"ls bundle/held/1"); said != "inside\n" {
		t.Errorf("the runtime has %q", said)
	}
	if said := held(t, spec, "ls bundle/held/1"); !strings.Contains(said, "mount /v: a link on the way of its subPath leads out of the volume") {
		t.Errorf("a link before it is opened: %q", said)
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(table), volume) {
		t.Errorf("the machine has a mount of it: %v", err)
	}
}

// TestSecurityJ9TheRuntimeWritesNothingElse checks the directories that the runtime makes for mounts inside a
// volume, where a container may have put a link.
func TestSecurityJ9TheRuntimeWritesNothingElse(t *testing.T) {
	volume, other, outside := t.TempDir(), t.TempDir(), t.TempDir()
	link := filepath.Join(volume, "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	spec := Spec{Mounts: []Mount{{Source: volume, Target: "/v"}, {Source: other, Target: "/v/link/new"}}}
	said := held(t, spec, "mkdir "+link+"/new; mkdir "+outside+"/new; for d in "+volume+" "+other+" bundle state rootfs; do mkdir $d/made || echo no; done; : >/dev/null && echo done")
	if strings.Count(said, "Read-only file system") != 2 || strings.Contains(said, "no\n") || !strings.HasSuffix(said, "done\n") {
		t.Errorf("got %q", said)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("on the machine is now %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(volume, "made")); err != nil {
		t.Error(err)
	}
}
