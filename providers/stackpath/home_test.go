// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// home is a cluster with one node, as a provider sees it, and its own region.
type home struct {
	*remotetest.Home
	region *emulated
	config Config
	next   http.RoundTripper
}

func newHome(t *testing.T) *home {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	region, err := startRegion(ctx)
	if err != nil {
		t.Fatal(err)
	}
	h := &home{Home: remotetest.NewHome(t, "vk-0"), region: region, config: region.config("home")}
	next := region.transport()
	h.next = next
	t.Cleanup(func() { next.CloseIdleConnections(); region.close(); cancel() })
	return h
}

// opened is a provider with its driver.
type opened struct {
	*service.Provider[seen]
	driver *driver
}

// open makes a provider without running it.
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

// inBubble runs a test with its own time, on a region without a network.
func inBubble(t *testing.T, f func(t *testing.T, h *home)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		defer cancel()
		h := &home{Home: remotetest.NewHome(t, "vk-0"), region: newRegion(ctx)}
		h.next = remotetest.Direct{Handler: h.region.front}
		h.config = Config{
			Endpoint: "https://stackpath.test", StackID: h.region.Stack, ClientID: h.region.ClientID, ClientSecret: config.Literal(clientSecret), ClusterName: "home", CityCode: "ord",
			Capacity: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1000")},
		}
		h.region.MostItems = 1000
		f(t, h)
	})
}
