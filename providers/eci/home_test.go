// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"net/http"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// home is a cluster with one node, as a provider sees it, and a separate region.
type home struct {
	*remotetest.Home
	region *emulated
	config Config
	next   *http.Transport
}

func newHome(t *testing.T) *home {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	h := &home{Home: remotetest.NewHome(t, "vk-0"), region: startRegion(ctx)}
	t.Cleanup(func() { h.region.close(); cancel() })
	h.config, h.next = h.region.config("home"), h.region.transport()
	t.Cleanup(h.next.CloseIdleConnections)
	return h
}

// opened is a provider with its driver.
type opened struct {
	*service.Provider[instance]
	driver *driver
}

// open makes a provider without running it.
func (h *home) open() (p opened) {
	h.Helper()
	config, err := h.config.complete()
	if err != nil {
		h.Fatal(err)
	}
	p.Provider, p.driver = newProvider(h.Input(), config, h.next)
	return p
}

// start runs a provider until stop is called, or the test ends.
func (h *home) start() (p opened, stop func()) {
	h.Helper()
	p = h.open()
	return p, h.Run(p)
}

func stays() program.Program { return program.Program{Print: []string{"begun"}, Stay: program.Forever} }
