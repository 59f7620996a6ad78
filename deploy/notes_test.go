// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"strings"
	"testing"
)

// TestSecurityC4TheServiceAccountIsWarnedOf: the notes and documents recommend the identity of a node, and warn
// of the rights of a ServiceAccount.
func TestSecurityC4TheServiceAccountIsWarnedOf(t *testing.T) {
	for name, given := range modes {
		files, err := renderFiles(t, "ns", given)
		if err != nil {
			t.Fatal(err)
		}
		notes := files["virtual-kubelet/templates/NOTES.txt"]
		if !strings.Contains(notes, "kubectl get node virtual-kubelet") {
			t.Fatalf("%s: the notes are %q", name, notes)
		}
		for _, part := range []string{"WARNING", "identity.mode=node", "tokens of every service account", "deploy/manifests/admission.yaml", "docs/deploy.md#what-a-serviceaccount-can-do"} {
			if strings.Contains(notes, part) != (name == serviceAccount) {
				t.Errorf("%s: %q is in the notes: %v:\n%s", name, part, name != serviceAccount, notes)
			}
		}
	}
	for _, want := range []struct{ file, first, second string }{
		{"../docs/deploy.md", "| **node**", "| **serviceAccount**"},
		{"../docs/deploy.md", "--set identity.mode=node", "--set identity.mode=serviceAccount"},
		{"../docs/deploy.md", "apply -f deploy/manifests/node-bootstrap.yaml", "## What a ServiceAccount can do"},
		{"helm/virtual-kubelet/values.yaml", "# node (recommended)", "# serviceAccount:"},
	} {
		text, err := os.ReadFile(want.file)
		if err != nil {
			t.Fatal(err)
		}
		first, second := strings.Index(string(text), want.first), strings.Index(string(text), want.second)
		if first < 0 || second < first {
			t.Errorf("%s: %q is at %d and %q at %d, want the identity of a node first", want.file, want.first, first, want.second, second)
		}
	}
}
