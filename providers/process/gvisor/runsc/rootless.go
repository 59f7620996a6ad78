// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"io"
	"slices"

	"gvisor.dev/gvisor/pkg/log"
	"gvisor.dev/gvisor/runsc/config"
	"gvisor.dev/gvisor/runsc/flag"
	"gvisor.dev/gvisor/runsc/specutils"
)

const rootless = "--rootless"

// withoutRoot returns the arguments that gVisor gets. It refuses --rootless with a network of the sandbox's own, because it makes that network
// by the rights of root; here podnet makes it, and needs none. As root of a new user namespace gVisor needs no --rootless, and it would do
// nothing but make that namespace: asRoot does, in which this is run again.
func withoutRoot(args []string, asRoot func() error) ([]string, error) {
	at := slices.Index(args, rootless)
	if at < 0 || !makesSandbox(args[1:]) {
		return args, nil
	}
	if err := asRoot(); err != nil {
		return nil, err
	}
	return slices.Delete(slices.Clone(args), at, at+1), nil
}

// makesSandbox tells whether the arguments are a command that gVisor refuses.
func makesSandbox(args []string) bool {
	flags := flag.NewFlagSet("runsc", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	config.RegisterFlags(flags)
	if flags.Parse(args) != nil || flags.NArg() == 0 || !slices.Contains([]string{"create", "run"}, flags.Arg(0)) {
		return false
	}
	network := flags.Lookup("network")
	return network != nil && network.Value.String() == config.NetworkSandbox.String()
}

// maybeRunAsRoot runs this program again as root of a new user namespace, and ends as that does, unless it has the rights of root. gVisor logs
// that, and has no log yet: the line would be one of the container's own.
func maybeRunAsRoot() error {
	log.SetTarget(log.GoogleEmitter{Writer: &log.Writer{Next: io.Discard}})
	return specutils.MaybeRunAsRoot()
}
