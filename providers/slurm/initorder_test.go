// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/providers/slurm/internal/enter"
)

// TestContainersBeginEarly: a process of a container is done before the packages that cost are initialized. This program has them.
func TestContainersBeginEarly(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	trace := func(args ...string) []string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), self, args...)
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var said bytes.Buffer
		cmd.Stderr = &said
		for range 2 { // for what it reads, and what it says
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer null.Close()
			cmd.ExtraFiles = append(cmd.ExtraFiles, null)
		}
		_ = cmd.Run() // without an entry it fails
		var packages []string
		for line := range strings.Lines(said.String()) {
			if name, ok := strings.CutPrefix(line, "init "); ok {
				name, _, _ = strings.Cut(name, " ")
				packages = append(packages, name)
			}
		}
		return packages
	}
	early, all := trace(enter.Marker, enter.ModeEnter), trace("-test.run=^$")
	costs := func(packages []string) (found []string) {
		for _, name := range packages {
			if slices.Contains([]string{"net/http", "crypto/tls", "google.golang.org/grpc", "google.golang.org/protobuf/internal/impl"}, name) || strings.Contains(name, "k8s.io/") {
				found = append(found, name)
			}
		}
		return found
	}
	if len(costs(all)) < 20 {
		t.Fatalf("the program initializes %q: want what costs among it", all)
	}
	if found := costs(early); len(early) == 0 || len(found) > 0 || len(early)*2 > len(all) {
		t.Errorf("%d of %d packages were initialized before, with %q: want none of those that cost", len(early), len(all), found)
	}
}
