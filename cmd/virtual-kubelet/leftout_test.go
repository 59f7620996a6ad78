// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestProvidersCanBeLeftOut checks that a program without a provider contains no packages of it.
func TestProvidersCanBeLeftOut(t *testing.T) {
	const prefix = "github.com/virtual-kubelet/virtual-kubelet/providers/"
	if len(providers()) == 0 {
		t.Fatal("the program has no provider")
	}
	for _, p := range providers() {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "no_"+p.Name, ".").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if strings.Contains(string(out), prefix+p.Name) {
			t.Errorf("with the tag no_%s the program still has the provider", p.Name)
		}
		if n := len(providers()); n > 1 && !strings.Contains(string(out), prefix) {
			t.Errorf("with the tag no_%s the program has no provider, want %d", p.Name, n-1)
		}
	}
}
