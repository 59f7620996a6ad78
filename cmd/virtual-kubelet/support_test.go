// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

var update = flag.Bool("update", false, "write docs/reports/support.md and docs/reports/providers")

const supportPage = "../../docs/reports/support.md"

const supportHead = `# What pods get

` + "`make generate`" + ` writes this page from the declarations of the providers and from the results of the contract in ` + "`docs/reports/contract/`" + `.

## Who can do what

- ● **proven**: the provider declares the feature, and a check of the contract saw it work on a backend of the second table.
- ○ **declared**: the provider declares the feature, and no check has shown it.
- ◐ **left out**: the node runs the pod without the feature, and says so in an event.
- – **no**: the node refuses the pod, with the path of every field that asks for the feature. The pod waits with the reason
  ` + "`UnsupportedPodSpec`" + `, or fails with ` + "`--fail-unsupported`" + `.

The table holds for the default configuration. The page of each provider has a note for each limit. To know before:

` + "```" + `
virtual-kubelet check --provider cri --provider-config cri.yaml -f pod.yaml
` + "```" + `

The provider mock runs nothing, and takes every pod. The plugin of the provider plugin declares its own features.

`

const supportProofs = `
## Proven on what, when

` + "`make contract-results`" + ` runs the contract on the backends that a machine can have. With an account, ` + "`virtual-kubelet contract --result FILE`" + ` does;
add its file to that folder. A check is skipped if the provider does not declare the feature, or if the backend cannot be brought into
the state that the check needs: the page of each provider has the reasons.

`

// TestSupportPage compares docs/reports/support.md with the declared and the proven features of the
// providers. The flag -update writes the page.
func TestSupportPage(t *testing.T) {
	var declared []capability.Named
	var proofs strings.Builder
	proofs.WriteString("| Provider | Proven on | When | Version | Passed | Failed | Skipped | Declared features proven |\n|---|---|---|---|---|---|---|---|\n")
	for _, p := range read(t) {
		proofs.WriteString(p.proofs())
		if p.declared != nil {
			declared = append(declared, capability.Named{Name: p.name, Declaration: *p.declared, Proven: p.proven()})
		}
	}
	if len(declared) == 0 {
		t.Fatal("no provider declares anything")
	}
	compare(t, supportPage, supportHead+capability.Table(declared...)+supportProofs+proofs.String())
}

// compare checks the content of a page, or writes it with -update.
func compare(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not what it is made from (%v); run make generate", strings.TrimPrefix(path, "../../"), err)
	}
}
