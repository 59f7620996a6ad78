// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

// Command runsc is gVisor's runsc with three differences:
//
//   - The seccomp filters of its sandboxes are compiled at build time, as in gVisor's own releases. Built as a Go module, gVisor compiles
//     them at each start of a sandbox, which takes longer than the rest of the start.
//   - `runsc podnet` is the network of pods: see package podnet.
//   - A rootless sandbox can have its own network (--rootless with --network=sandbox).
package main

//go:generate go run ../generate -o programs_$GOARCH.json

import (
	"fmt"
	"os"
	"slices"
	_ "unsafe" // for linkname

	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	"gvisor.dev/gvisor/runsc/boot/filter"
	"gvisor.dev/gvisor/runsc/cli/maincli"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/gvisor/podnet"
)

// precompiledPrograms is gVisor's table of compiled filters, by the options of a sandbox. gVisor compiles missing
// filters.
//
//go:linkname precompiledPrograms gvisor.dev/gvisor/runsc/boot/filter.precompiledPrograms
var precompiledPrograms map[string]precompiledseccomp.Program

func init() {
	if !slices.Contains(os.Args, "boot") { // no other command installs filters
		return
	}
	if err := addPrograms(); err != nil {
		panic(err) // the file is part of this program
	}
}

// addPrograms adds the filters for this processor to gVisor's table.
func addPrograms() error {
	programs, err := readPrograms()
	filter.ListPrecompiled() // creates the map; a later first call would drop the entries
	for _, p := range programs {
		precompiledPrograms[p.Name] = p
	}
	return err
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "podnet" {
		os.Exit(podnet.Main(os.Args[2:]))
	}
	args, err := withoutRoot(os.Args, maybeRunAsRoot)
	if err != nil {
		fmt.Fprintln(os.Stderr, "runsc: run as root of a new user namespace:", err)
		os.Exit(128) // the exit code of gVisor
	}
	os.Args = args
	maincli.Main()
}
