// SPDX-License-Identifier: Apache-2.0

// Command virtual-kubelet runs a virtual node with a built-in provider.
//
// Its settings are in docs/configuration.md. The build tag no_NAME excludes the provider with that name. A program for another provider only needs a
// main function like this one.
package main

import "github.com/virtual-kubelet/virtual-kubelet/cli"

// Set by the linker: -X main.buildVersion=… -X main.buildCommit=… -X main.buildTime=… -X main.gVisorVersion=….
var buildVersion, buildCommit, buildTime, gVisorVersion string

func main() {
	cli.Program{
		Version: buildVersion, Commit: buildCommit, BuildTime: buildTime, GVisor: gVisorVersion,
		Providers: providers(), Commands: commands(),
	}.Main()
}
