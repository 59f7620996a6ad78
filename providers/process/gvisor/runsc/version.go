// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"runtime/debug"
	_ "unsafe" // for linkname

	"gvisor.dev/gvisor/runsc/version"
)

// gvisorModule is the Go module of gVisor.
const gvisorModule = "gvisor.dev/gvisor"

// gvisorVersion is the version that gVisor prints for --version. gVisor's own builds set it at link time.
//
//go:linkname gvisorVersion gvisor.dev/gvisor/runsc/version.version
var gvisorVersion string

// This keeps the package linked, for gvisorVersion.
var _ = version.Version()

func init() {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return
	}
	for _, m := range info.Deps {
		if m.Path == gvisorModule {
			gvisorVersion = m.Version
		}
	}
}
