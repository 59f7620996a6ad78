// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// newBackend stands for the function that creates your provider.
func newBackend(context.Context, cli.ProviderInput) (nodeutil.Provider, error) { return nil, nil }

// Example is the whole main function of a provider's program.
func Example() {
	cli.Main(cli.Provider{Name: "backend", New: newBackend})
}

// ExampleProgram is a program with several providers, with a version from the linker.
func ExampleProgram() {
	var version string // -X main.version=v1.2.3
	cli.Program{Version: version, Providers: []cli.Provider{
		{Name: "backend", New: newBackend},
		{Name: "another", New: newBackend},
	}}.Main()
}
