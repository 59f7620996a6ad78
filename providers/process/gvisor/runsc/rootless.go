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

// withoutRoot returns the arguments for gVisor. gVisor refuses --rootless with --network=sandbox, because it
// needs root to create that network. Here podnet creates the network, without root. So withoutRoot removes
// --rootless, and calls asRoot, which runs this program again as root of a new user namespace: --rootless would
// do nothing else.
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

// makesSandbox reports whether the arguments are a command that gVisor would refuse with these flags.
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

// maybeRunAsRoot runs this program again as root of a new user namespace, and ends with its exit code. It returns
// if it already runs as root. It discards gVisor's log line about this: there is no log yet, so the line would
// appear in the container's output.
func maybeRunAsRoot() error {
	log.SetTarget(log.GoogleEmitter{Writer: &log.Writer{Next: io.Discard}})
	return specutils.MaybeRunAsRoot()
}
