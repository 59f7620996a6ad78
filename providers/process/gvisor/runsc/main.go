// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

// Command runsc is gVisor's program of that name, with the seccomp filters of its sandboxes compiled when it is built. As a Go
// module gVisor compiles them at each start of a sandbox, which takes longer than the rest of the start; its own releases link
// them as this does.
package main

//go:generate go run ../generate -o programs_$GOARCH.go

import (
	_ "unsafe" // for linkname

	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	"gvisor.dev/gvisor/runsc/boot/filter"
	"gvisor.dev/gvisor/runsc/cli/maincli"
	"gvisor.dev/gvisor/runsc/version"
)

// precompiledPrograms is where gVisor looks for the program of a sandbox's options. What is not there it compiles.
//
//go:linkname precompiledPrograms gvisor.dev/gvisor/runsc/boot/filter.precompiledPrograms
var precompiledPrograms map[string]precompiledseccomp.Program

// The version is set by whoever builds, and has to be linked.
var _ = version.Version()

func init() {
	filter.ListPrecompiled() // makes the map, once; later it would throw these away
	for _, p := range programs {
		precompiledPrograms[p.Name] = p
	}
}

func main() { maincli.Main() }
