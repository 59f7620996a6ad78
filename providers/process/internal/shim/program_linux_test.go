// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestShimsAreRunByAProgramOfThisVersionOnly checks that only a program of this version runs shims, and that the
// same program keeps doing so after another one has replaced it on disk.
func TestShimsAreRunByAProgramOfThisVersionOnly(t *testing.T) {
	defer func(was string, spoke int) { build, protocol = was, spoke }(build, protocol)
	build = "v1"
	dir := t.TempDir()
	refused := func(what string, why ...string) {
		t.Helper()
		path, err := programIn(dir)
		for _, want := range why {
			if path != ownPath() || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %s, %v, want %s in it", what, path, err, want)
			}
		}
	}
	if path, err := programIn(dir); path != ownPath() || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is none: got %s, %v", path, err)
	}
	file := filepath.Join(dir, Argv0)
	if err := os.WriteFile(file, nil, 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	refused("it is none", file)
	for _, stamp := range []string{"", "v11", "v1"} {
		program := filepath.Join(t.TempDir(), "built")
		command := exec.CommandContext(t.Context(), "go", "build", "-o", program, "-ldflags",
			"-X github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim.build="+stamp, "../../supervisor")
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := os.Rename(program, file); err != nil {
			t.Fatal(err)
		}
		build = stamp
		said := protocolVersion()
		if build = "v1"; stamp != build {
			refused(stamp, fmt.Sprintf("it was built of %q, and this of %q", said, protocolVersion()))
		}
		if build = ""; stamp == build {
			refused("nobody knows what both were built of", file, "make build")
		}
		build = "v1"
	}
	protocol++
	refused("it was built of other changes of the same tree", "it was built of")
	protocol--
	path, err := programIn(dir)
	if err != nil || path == ownPath() {
		t.Fatalf("got %s, %v", path, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	again := exec.CommandContext(t.Context(), path)
	again.Args = []string{Argv0, buildMode}
	if out, err := again.Output(); err != nil || string(out) != protocolVersion()+"\n" {
		t.Errorf("after it was removed: got %q, %v", out, err)
	}
}

// TestOtherMessagesAreAnotherVersion checks that any change of a message changes the version of the protocol. A
// program would ignore a field that it does not know.
func TestOtherMessagesAreAnotherVersion(t *testing.T) {
	of := func(t reflect.Type) uint32 {
		sum := fnv.New32a()
		writeShape(sum, t)
		return sum.Sum32()
	}
	type part struct{ A int }
	type message struct {
		Name  string
		Parts map[string]*part
	}
	was := of(reflect.TypeFor[message]())
	{
		type part struct{ A, B int }
		type message struct {
			Name  string
			Parts map[string]*part
		}
		if of(reflect.TypeFor[message]()) == was {
			t.Error("a field more, of a part, is the same version")
		}
	}
	{
		type message struct {
			Name  string `json:"name"`
			Parts map[string]*part
		}
		if of(reflect.TypeFor[message]()) == was {
			t.Error("another name in the message is the same version")
		}
	}
	{
		type message struct {
			Name  string
			Parts map[string]*part
		}
		if of(reflect.TypeFor[message]()) != was {
			t.Error("the same is another version")
		}
	}
}
