// SPDX-License-Identifier: Apache-2.0

// Package podjobtest has shared code of tests whose containers are programs of this machine, started by package
// podjob.
package podjobtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// ProgramName is the name of the file of the program of the contract.
const ProgramName = "contractprogram"

// Program builds the program of the contract, and returns its path, which is the same in containers.
func Program(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "contract-") //nolint:usetesting // a container has a /tmp of its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // other users run it
		t.Fatal(err)
	}
	path := filepath.Join(dir, ProgramName)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/virtual-kubelet/virtual-kubelet/providertest/program/contractprogram")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program of the contract: %v: %s", err, out)
	}
	return path
}
