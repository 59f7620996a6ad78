// SPDX-License-Identifier: Apache-2.0

// Command coredns is CoreDNS with only the plugins that a cluster's DNS needs: the suite resolves names of
// services and pods, and each further plugin would take minutes to compile.
package main

import (
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
)

func main() {
	// This is the order in which plugins see a query; the list in CoreDNS itself names all plugins.
	dnsserver.Directives = []string{"bind", "ready", "errors", "kubernetes"}
	coremain.Run()
}
