// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"runtime/debug"
	_ "unsafe" // for linkname

	"gvisor.dev/gvisor/runsc/version"
)

// gvisorModule is the source module of runsc.
const gvisorModule = "gvisor.dev/gvisor"

// gvisorVersion is gVisor's own version text for --version. Its own builds set it when they link.
//
//go:linkname gvisorVersion gvisor.dev/gvisor/runsc/version.version
var gvisorVersion string

// It has to be linked.
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
