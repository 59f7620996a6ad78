// SPDX-License-Identifier: Apache-2.0

package service

import (
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
)

// appears loses the answer of a create. As the service lags, the instance appears only shortly before the
// service's time is over.
func appears(c *cloud, in *Inputs) (vm, error) {
	time.AfterFunc(30*time.Second, func() { c.make(in) })
	return vm{}, errLost
}

// TestInstanceThatAppearsLateIsFoundBeforeTheDoubtEnds: the last search runs when no further instance can
// appear. An instance that appeared shortly before may be in no earlier list or search.
func TestInstanceThatAppearsLateIsFoundBeforeTheDoubtEnds(t *testing.T) {
	for kind, again := range policies {
		for _, deleted := range []bool{false, true} {
			t.Run(kind, func(t *testing.T) {
				bubble(t, again, func(t *testing.T, h *home) {
					p, _ := h.start(empty{h.cloud}) // a list would be as late as the last question
					h.cloud.faults = append(h.cloud.faults, appears)
					pod := h.pod("web")
					if err := p.CreatePod(t.Context(), pod.DeepCopy()); err == nil {
						t.Fatal("the answer was not lost")
					}
					if deleted {
						h.delete(p, pod)
						if _, there := h.cloud.count(); there != 0 {
							t.Errorf("%d instances are left", there)
						}
						return
					}
					time.Sleep(2 * time.Second)
					h.create(p, pod)
					if made, _ := h.cloud.count(); made > 1 {
						t.Errorf("%d instances were made", made)
					}
				})
			})
		}
	}
}

// TestKnownInstanceEndsTheDoubt: when a list shows the instance of a pod, a delete does not wait for a second
// one. This holds for a create without an answer and for the instance of an earlier process.
func TestKnownInstanceEndsTheDoubt(t *testing.T) {
	for kind, again := range policies {
		for _, restart := range []bool{false, true} {
			t.Run(kind, func(t *testing.T) {
				bubble(t, again, func(t *testing.T, h *home) {
					long := func(c *Config) { c.SeenWithin = 10 * time.Minute }
					p, stop := h.start(nil, long)
					h.cloud.faults = append(h.cloud.faults, after)
					pod := h.pod("web")
					if err := p.CreatePod(t.Context(), pod.DeepCopy()); err == nil {
						t.Fatal("the answer was not lost")
					}
					if restart {
						stop()
						p, _ = h.start(nil, long)
					}
					time.Sleep(2 * time.Minute)
					if _, err := p.GetPod(t.Context(), "ns", "web"); err != nil {
						t.Fatalf("no list has shown it: %v", err)
					}
					begun := time.Now()
					h.delete(p, pod)
					if err := p.DeletePod(t.Context(), pod.DeepCopy()); !errdefs.IsNotFound(err) || time.Since(begun) > 30*time.Second {
						t.Errorf("restart: %t: after %s got %v", restart, time.Since(begun), err)
					}
				})
			})
		}
	}
}

// TestPodIsLookedForWhileAnEarlierProcessMayHaveMadeIt: the provider searches for an instance of an earlier
// process during EarlierWithin, even if this is longer than the time for its own creates.
func TestPodIsLookedForWhileAnEarlierProcessMayHaveMadeIt(t *testing.T) {
	for kind, again := range policies {
		t.Run(kind, func(t *testing.T) {
			bubble(t, again, func(t *testing.T, h *home) {
				pod := h.pod("web")
				p, _ := h.start(empty{h.cloud}, func(c *Config) { c.EarlierWithin = 10 * time.Minute })
				time.Sleep(5 * time.Minute)
				h.cloud.vms = []vm{{id: "vm-1", pod: identity.Of(pod), made: time.Now().Add(-time.Hour)}}
				if err := p.DeletePod(t.Context(), pod.DeepCopy()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestRefusalFailsNoPodThatAnEarlierProcessMade: lists lack the instance of an earlier process, and the service
// has it. A refused create does not fail this pod. A pod without an instance fails.
func TestRefusalFailsNoPodThatAnEarlierProcessMade(t *testing.T) {
	for kind, again := range policies {
		for _, made := range []bool{false, true} {
			t.Run(kind, func(t *testing.T) {
				bubble(t, again, func(t *testing.T, h *home) {
					pod := h.pod("web")
					if made {
						h.cloud.make(&Inputs{Pod: pod})
						time.Sleep(lag)
					}
					p, _ := h.start(empty{h.cloud})
					h.cloud.faults = append(h.cloud.faults, invalid)
					if err := p.CreatePod(t.Context(), pod.DeepCopy()); made && err != nil || !made && again != AgainMakesAnother && !errdefs.IsInvalidInput(err) {
						t.Errorf("made: %t: got %v", made, err)
					}
				})
			})
		}
	}
}
