// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestProgramsHaveNoPackageTesting holds that programs check the contract of providers without importing package testing.
func TestProgramsHaveNoPackageTesting(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	packages := strings.Fields(string(out))
	const contract = "github.com/virtual-kubelet/virtual-kubelet/providertest"
	if slices.Contains(packages, "testing") || !slices.Contains(packages, contract) {
		t.Errorf("the program has package testing: %t, and the contract: %t; want only the contract", slices.Contains(packages, "testing"), slices.Contains(packages, contract))
	}
}
