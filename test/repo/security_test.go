// SPDX-License-Identifier: Apache-2.0

package repo_test

import (
	"testing"
)

// fuzzed is what reads what others write, and the target that feeds it: the text of a seed or of a fuzzer.
var fuzzed = map[string]string{
	"FuzzResolve":      "internal/podenv",                 // environments and the downward API of pods
	"FuzzParseLogOpts": "node/api",                        // options of a request for logs
	"FuzzTail":         "node/api",                        // logs of providers
	"FuzzPaths":        "node/nodeutil",                   // paths of requests, and the permissions that they need
	"FuzzNodeNames":    "node/nodeutil",                   // patterns of names
	"FuzzDecode":       "cli/configfile",                  // configuration files, also those of providers
	"FuzzSettings":     "cli",                             // the program's own settings
	"FuzzPacket":       "providers/process/gvisor/podnet", // packets of pods
}

// TestSecurityH2WhatOthersWriteIsFuzzed sees that there are targets; their seeds run as tests of their packages.
func TestSecurityH2WhatOthersWriteIsFuzzed(t *testing.T) {
	has := map[string]string{}
	for _, target := range load(t).Tests("Fuzz") {
		has[target.Name] = target.Dir
	}
	for name, dir := range fuzzed {
		if has[name] != dir {
			t.Errorf("%s is not in %s: what it fed is trusted as it comes", name, dir)
		}
	}
}

func TestSecurityG6NoKeyMaterialIsInTheRepository(t *testing.T) {
	breaches, err := load(t).KeyMaterial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	report(t, "what is in the history of a repository is known to everybody, for ever", breaches)
}
