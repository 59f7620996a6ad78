// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

// TestUnlistedServiceIsAskedForAPodThatIsDeleted: with a service that has no complete lists, a delete searches
// for the instance of an unknown pod. Otherwise the instance would run for ever.
func TestUnlistedServiceIsAskedForAPodThatIsDeleted(t *testing.T) {
	bubble(t, AgainMakesAnother, func(t *testing.T, h *home) {
		p, _ := h.start(empty{h.cloud}, func(c *Config) { c.Unlisted = true })
		time.Sleep(time.Hour)
		pod := h.pod("web")
		h.cloud.vms = []vm{{id: "vm-1", pod: identity.Of(pod), made: time.Now().Add(-time.Hour)}}
		if err := p.DeletePod(t.Context(), pod.DeepCopy()); err != nil {
			t.Error(err)
		}
		if _, there := h.cloud.count(); there != 0 {
			t.Error("the instance is left")
		}
	})
}

// empty is a cloud whose lists are empty.
type empty struct{ *cloud }

func (empty) List(context.Context) ([]vm, error) { return nil, nil }

// TestPodThatMayAppearIsNotMissing: while an instance of a pod may still appear, GetPod does not return
// NotFound.
func TestPodThatMayAppearIsNotMissing(t *testing.T) {
	bubble(t, AgainMakesAnother, func(t *testing.T, h *home) {
		pod := h.pod("web") // before the process
		p, _ := h.start(nil, func(c *Config) { c.EarlierWithin = 10 * time.Second })
		if _, err := p.GetPod(t.Context(), "ns", pod.Name); err == nil || errdefs.IsNotFound(err) {
			t.Errorf("an earlier process may have made it: got %v", err)
		}
		time.Sleep(10 * time.Second)
		if _, err := p.GetPod(t.Context(), "ns", pod.Name); !errdefs.IsNotFound(err) {
			t.Errorf("nobody has made it: got %v", err)
		}
		h.cloud.faults = append(h.cloud.faults, before)
		if err := p.CreatePod(t.Context(), pod.DeepCopy()); err == nil {
			t.Fatal("the answer was not lost")
		}
		if _, err := p.GetPod(t.Context(), "ns", pod.Name); err == nil || errdefs.IsNotFound(err) {
			t.Errorf("an answer was lost: got %v", err)
		}
		if _, err := p.GetPod(t.Context(), "ns", "other"); !errdefs.IsNotFound(err) {
			t.Errorf("a pod that the cluster does not have: got %v", err)
		}
	})
}

// TestPingerDecidesWhetherTheServiceIsWell: the driver's own Ping decides, even while lists fail.
func TestPingerDecidesWhetherTheServiceIsWell(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		d := &pinged{cloud: h.cloud}
		p, _ := h.start(d)
		h.cloud.edit(func() { h.cloud.dark = true })
		time.Sleep(5 * time.Minute)
		if err := p.Ping(t.Context()); err != nil {
			t.Errorf("got %v", err)
		}
		d.err = errors.New("the plugin is away")
		if err := p.Ping(t.Context()); !errors.Is(err, d.err) {
			t.Errorf("got %v", err)
		}
		if err := p.Examine(t.Context()); !errors.Is(err, d.err) {
			t.Errorf("doctor is told %v", err)
		}
	})
}

type pinged struct {
	*cloud
	err error
}

func (p *pinged) Ping(context.Context) error { return p.err }

// TestDoubtfulStopOfAnEndedInstanceIsAskedAgain: a doubtful answer to the stop of an ended instance does not
// remove the pod. Otherwise its records would stay at the service.
func TestDoubtfulStopOfAnEndedInstanceIsAskedAgain(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		p, _ := h.start(nil)
		pod := h.pod("web")
		h.create(p, pod)
		h.cloud.mu.Lock()
		h.cloud.vms[0].ended = true
		h.cloud.stop = func(vm) error { return errdefs.RetryAfter(errdefs.NotFound("no such path"), time.Second) }
		h.cloud.mu.Unlock()
		time.Sleep(time.Minute)
		for range 2 {
			if err := p.DeletePod(t.Context(), pod.DeepCopy()); err == nil || errdefs.IsNotFound(err) {
				t.Errorf("got %v", err)
			}
			time.Sleep(time.Minute)
		}
		h.cloud.mu.Lock()
		h.cloud.stop = nil
		h.cloud.mu.Unlock()
		if err := p.DeletePod(t.Context(), pod.DeepCopy()); err != nil {
			t.Error(err)
		}
		if _, there := h.cloud.count(); there != 0 {
			t.Errorf("%d are left", there)
		}
	})
}

// TestUnlistedServiceIsAskedBeforeASecondCreate: a retry long after a lost answer, or after a restart, finds the
// earlier instance.
func TestUnlistedServiceIsAskedBeforeASecondCreate(t *testing.T) {
	for _, restart := range []bool{false, true} {
		bubble(t, AgainMakesAnother, func(t *testing.T, h *home) {
			unlisted := func(c *Config) { c.Unlisted, c.EarlierWithin = true, time.Second }
			p, stop := h.start(empty{h.cloud}, unlisted)
			pod := h.pod("web")
			h.cloud.faults = append(h.cloud.faults, after, before)
			if err := p.CreatePod(t.Context(), pod.DeepCopy()); err == nil {
				t.Fatal("the answer was not lost")
			}
			if restart {
				stop()
				p, _ = h.start(empty{h.cloud}, unlisted)
			}
			time.Sleep(5 * time.Minute)
			other := h.pod("other")
			if err := p.CreatePod(t.Context(), other); err == nil {
				t.Fatal("the answer was not lost")
			}
			if err := p.CreatePod(t.Context(), pod.DeepCopy()); err != nil {
				t.Error(err)
			}
			if made, _ := h.cloud.count(); made != 1 {
				t.Errorf("restarted: %t: %d instances were made", restart, made)
			}
			finds := h.cloud.finds
			if err := p.CreatePod(t.Context(), h.pod("new")); err != nil || h.cloud.finds != finds {
				t.Errorf("a new pod: %v, and it was looked for %d times", err, h.cloud.finds-finds)
			}
		})
	}
}

// TestUnlistedProviderIsNoAuthority: an Unlisted provider does not claim to answer for all pods. It has all
// other abilities.
func TestUnlistedProviderIsNoAuthority(t *testing.T) {
	var p any = Unlisted[vm]{Provider: New[vm](Config{}, &cloud{})}
	if _, is := p.(node.PodAuthority); is {
		t.Error("it answers for all pods")
	}
	if _, is := p.(nodeutil.Provider); !is {
		t.Error("it is no provider")
	}
	_, notifies := p.(node.PodNotifier)
	_, runs := p.(node.BackgroundRunner)
	_, asked := p.(node.NodeProvider)
	if !notifies || !runs || !asked {
		t.Errorf("it notifies %t, runs %t, is asked of the node %t", notifies, runs, asked)
	}
}
