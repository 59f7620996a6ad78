// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/virtual-kubelet/virtual-kubelet/cli"

// builtIn are the providers of this build. Each provider_NAME.go adds one, and the build tag no_NAME leaves it out.
var builtIn []func() cli.Provider

// providers are the built-in providers.
func providers() []cli.Provider {
	all := make([]cli.Provider, 0, len(builtIn))
	for _, provider := range builtIn {
		all = append(all, provider())
	}
	return all
}
