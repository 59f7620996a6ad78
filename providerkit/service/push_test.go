// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

// pushing is a cloud that reports changes by itself.
type pushing struct {
	*cloud
	p    *Provider[vm]
	list chan []vm
}

func (d *pushing) List(context.Context) ([]vm, error) { panic("a service that pushes is not asked") }

// Follow passes the lists of the test to the cache.
func (d *pushing) Follow(ctx context.Context) {
	for {
		select {
		case all := <-d.list:
			d.p.Cache().TakeAll(ctx, time.Now(), all)
		case <-ctx.Done():
			return
		}
	}
}

// TestFollowerTakesThePlaceOfRounds: the pods come from the lists that the driver pushes, and calls wait for the
// first list.
func TestFollowerTakesThePlaceOfRounds(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		d := &pushing{cloud: h.cloud, list: make(chan []vm, 1)}
		h.pod("web")
		d.p, _ = h.start(d)
		if _, err := d.p.GetPod(t.Context(), "ns", "web"); err == nil || errdefs.IsNotFound(err) {
			t.Errorf("before the first list: %v", err)
		}
		pod := h.pod("web")
		d.list <- []vm{{id: "vm-1", pod: identity.Of(pod), made: time.Now()}}
		synctest.Wait()
		if got, err := d.p.GetPod(t.Context(), "ns", "web"); err != nil || got.UID != pod.UID || len(got.Spec.Containers) != 1 {
			t.Errorf("after the list of the driver: %v, %v", got, err)
		}
	})
}
