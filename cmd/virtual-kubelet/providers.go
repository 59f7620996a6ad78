// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/cmd/virtual-kubelet/internal/scaffold"
)

// builtIn are the providers of this build. Each provider_NAME.go adds one, and the build tag no_NAME excludes it.
var builtIn []func() cli.Provider

// more are the commands of this build in addition to the common commands. Each belongs to a provider, and is in the build if the provider is.
var more []func() *cobra.Command

// commands returns the additional commands of the program.
func commands() []*cobra.Command {
	all := []*cobra.Command{scaffold.Command(buildVersion)}
	for _, command := range more {
		all = append(all, command())
	}
	return all
}

// providers returns the built-in providers.
func providers() []cli.Provider {
	all := make([]cli.Provider, 0, len(builtIn))
	for _, provider := range builtIn {
		all = append(all, provider())
	}
	return all
}
