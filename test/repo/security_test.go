// SPDX-License-Identifier: Apache-2.0

package repo_test

import (
	"testing"
)

// fuzzed maps each fuzz target to its package. The targets test the parsers of input from others.
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

// TestSecurityH2WhatOthersWriteIsFuzzed checks that the targets exist; their seeds run as tests of their packages.
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
