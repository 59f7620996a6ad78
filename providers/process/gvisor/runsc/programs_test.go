// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"runtime"
	"slices"
	"testing"

	"gvisor.dev/gvisor/pkg/seccomp"
	"gvisor.dev/gvisor/pkg/sentry/platform"
	_ "gvisor.dev/gvisor/pkg/sentry/platform/platforms" // registers them
	"gvisor.dev/gvisor/runsc/boot/filter"
	"gvisor.dev/gvisor/runsc/boot/filter/config"
)

// TestPrograms checks that each linked filter is the filter that gVisor would compile. It fails after a change
// of gVisor's version without a run of `go generate`.
func TestPrograms(t *testing.T) {
	programs, err := readPrograms()
	if err != nil {
		t.Fatal(err)
	}
	if len(programs) == 0 {
		t.Skip("none were made for " + runtime.GOARCH)
	}
	if err := addPrograms(); err != nil {
		t.Fatal(err)
	}
	systrap, err := platform.Lookup("systrap")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, info := range systrap.PrecompiledSeccompInfo() {
		for _, options := range []config.Options{
			{}, {HostFilesystem: true}, {HostNetwork: true}, {HostNetwork: true, HostFilesystem: true},
			{HostNetwork: true, HostNetworkRawSockets: true}, {HostNetwork: true, HostNetworkRawSockets: true, HostFilesystem: true},
		} {
			options.Platform, options.ControllerFD = info, 17
			linked, ok := filter.GetPrecompiled(options.ConfigKey())
			if !ok {
				t.Errorf("no filter for %s", options.ConfigKey())
				continue
			}
			found++
			got, err := linked.RenderInstructions(options.Vars())
			if err != nil {
				t.Errorf("%s: %v", options.ConfigKey(), err)
				continue
			}
			allowed, denied := config.Rules(options)
			compiled := seccomp.Program{
				RuleSets: []seccomp.RuleSet{{Rules: denied}, {Rules: allowed, Action: seccomp.Allow}},
				Options:  config.SeccompOptions(options),
			}
			want, _, err := compiled.Build()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %d instructions are linked and %d compiled, and they differ: run `go generate` in this folder", options.ConfigKey(), len(got), len(want))
			}
		}
	}
	if found != len(programs) {
		t.Errorf("%d of %d filters belong to options that are used", found, len(programs))
	}
}
