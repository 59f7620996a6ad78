// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

var update = flag.Bool("update", false, "write docs/support.md")

const supportPage = "../../docs/support.md"

const supportHead = `# What pods get

Written from the declarations of the providers by ` + "`make generate`" + `. It holds for their default configuration; what an operator has to
open is in the notes. A pod that asks for something that is not there is refused, with the path of every field that asks for it:
it waits with the reason ` + "`UnsupportedPodSpec`" + `, or fails with ` + "`--fail-unsupported`" + `. To know before:

` + "```" + `
virtual-kubelet check --provider cri --provider-config cri.yaml -f pod.yaml
` + "```" + `

The provider mock runs nothing, and takes every pod.

`

// TestSupportPage compares docs/support.md with what the providers declare; with -update it writes it.
func TestSupportPage(t *testing.T) {
	var declared []capability.Named
	for _, p := range providers() {
		if p.Capabilities == nil {
			continue
		}
		d, err := p.Capabilities("")
		if err != nil {
			t.Fatalf("provider %s without a configuration: %v", p.Name, err)
		}
		declared = append(declared, capability.Named{Name: p.Name, Declaration: d})
	}
	if len(declared) == 0 {
		t.Fatal("no provider declares anything")
	}
	want := supportHead + capability.Table(declared...)
	if *update {
		if err := os.WriteFile(supportPage, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(supportPage)
	if err != nil || string(got) != want {
		t.Errorf("docs/support.md is not what the providers declare (%v); run make generate", err)
	}
}
