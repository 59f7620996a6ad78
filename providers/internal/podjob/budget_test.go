// SPDX-License-Identifier: Apache-2.0

package podjob_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestProgramOfAPodStaysSmall: an agent inside a machine has no informers, no client of the API server and no SDK.
func TestProgramOfAPodStaysSmall(t *testing.T) {
	const most = 520
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if len(packages) > most {
		t.Errorf("it is made of %d packages, want %d at most", len(packages), most)
	}
	for _, p := range packages {
		for _, heavy := range []string{"k8s.io/client-go/", "github.com/Azure/", "github.com/aws/", "github.com/gophercloud/", "github.com/virtual-kubelet/virtual-kubelet/providerkit/service"} {
			if strings.HasPrefix(p, heavy) && p != "k8s.io/client-go/util/flowcontrol" { // flowcontrol only has delays, and imports no heavy packages
				t.Errorf("it imports %s", p)
			}
		}
	}
}

// ofOneHost matches words that belong to one system that starts pods.
var ofOneHost = regexp.MustCompile(`(?i)slurm|\bsrun\b|sbatch|squeue|scancel|scontrol`)

// TestNoWordOfOneHost: code for only one system belongs in the package of that system.
func TestNoWordOfOneHost(t *testing.T) {
	files, _ := filepath.Glob("*.go")
	more, _ := filepath.Glob("*/*.go")
	if len(more) == 0 {
		t.Error("package enter is not looked at")
	}
	for _, f := range append(files, more...) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if word := ofOneHost.Find(text); word != nil && filepath.Base(f) != "budget_test.go" {
			t.Errorf("%s says %q", f, word)
		}
	}
}
