// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

var update = flag.Bool("update", false, "write docs/reports/support.md and docs/providers")

const supportPage = "../../docs/reports/support.md"

const supportHead = `# What pods get

Written by ` + "`make generate`" + ` from the declarations of the providers and from what came of the contract of providers, in ` + "`docs/reports/contract/`" + `.

## What was proven, on what, when

` + "`make contract-results`" + ` runs the contract on the backends that a machine can have; with an account, ` + "`virtual-kubelet contract --result FILE`" + ` does,
and its file is added to that folder. A check is skipped where the provider does not declare what it is about, or where the backend cannot be made to do what
it needs. Each provider's page says which.

`

const supportFeatures = `
## Features

It holds for the default configuration; what an operator has to open is in the notes.

- **proven**: the provider declares the feature, and a check of the contract saw it work on a backend of the table above;
- **declared**: the provider says so, and no check has shown it;
- **no**: a pod that asks for it is refused, with the path of every field that asks for it: it waits with the reason ` + "`UnsupportedPodSpec`" + `, or fails
  with ` + "`--fail-unsupported`" + `.

To know before:

` + "```" + `
virtual-kubelet check --provider cri --provider-config cri.yaml -f pod.yaml
` + "```" + `

The provider mock runs nothing, and takes every pod. A pod on the provider plugin gets what the plugin declares.

`

// TestSupportPage compares docs/reports/support.md with what the providers declare and what was proven; with -update it writes it.
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
	compare(t, supportPage, supportHead+proofs.String()+supportFeatures+capability.Table(declared...))
}

// compare sees that a page is as it should be; with -update it writes it.
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
