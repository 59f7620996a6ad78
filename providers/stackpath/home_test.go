// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"context"
	"net/http"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// home is a cluster with one node, as a provider sees it, and a region of its own.
type home struct {
	*remotetest.Home
	region *emulated
	config Config
	next   *http.Transport
}

func newHome(t *testing.T) *home {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	region, err := startRegion(ctx)
	if err != nil {
		t.Fatal(err)
	}
	h := &home{Home: remotetest.NewHome(t, "vk-0"), region: region, config: region.config("home"), next: region.transport()}
	t.Cleanup(func() { h.next.CloseIdleConnections(); region.close(); cancel() })
	return h
}

// opened is a provider with its driver.
type opened struct {
	*service.Provider[seen]
	driver *driver
}

// open makes a provider, which does not run.
func (h *home) open() opened {
	h.Helper()
	config, err := h.config.complete()
	if err != nil {
		h.Fatal(err)
	}
	d := newDriver(h.Input(), config, h.next)
	return opened{d.kit, d}
}

// start runs a provider until stop is called, or the test ends.
func (h *home) start() (p opened, stop func()) {
	h.Helper()
	p = h.open()
	return p, h.Run(p)
}

func stays() program.Program { return program.Program{Print: []string{"begun"}, Stay: program.Forever} }
