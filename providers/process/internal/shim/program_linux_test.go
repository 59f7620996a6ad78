// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestShimsAreRunByAProgramOfThisVersionOnly, and by that one also when another has taken its place on disk.
func TestShimsAreRunByAProgramOfThisVersionOnly(t *testing.T) {
	defer func(was string) { build = was }(build)
	build = "v1"
	dir := t.TempDir()
	if path, err := programIn(dir); path != self() || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is none: got %s, %v", path, err)
	}
	file := filepath.Join(dir, Argv0)
	if err := os.WriteFile(file, nil, 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	if path, err := programIn(dir); path != self() || err == nil {
		t.Errorf("it is none: got %s, %v", path, err)
	}
	for _, version := range []string{"v11", "v1"} {
		program := filepath.Join(t.TempDir(), "built")
		command := exec.CommandContext(t.Context(), "go", "build", "-o", program, "-ldflags",
			"-X github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim.build="+version, "../../supervisor")
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := os.Rename(program, file); err != nil {
			t.Fatal(err)
		}
		says := `it was built of "v11", and this of "v1"`
		if path, err := programIn(dir); version != build && (path != self() || err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: got %s, %v", version, path, err)
		}
	}
	path, err := programIn(dir)
	if err != nil || path == self() {
		t.Fatalf("got %s, %v", path, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	again := exec.CommandContext(t.Context(), path)
	again.Args = []string{Argv0, buildMode}
	if out, err := again.Output(); err != nil || string(out) != "v1\n" {
		t.Errorf("after it was removed: got %q, %v", out, err)
	}
}
