// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// TestAnInstanceOfAnEarlierProcessIsShownLate: lists lack the instance at first, and its last change was before
// the first round. If the pod's status in the cluster shows that an instance existed, the cache searches for it.
// The cache is not complete before a list must contain the instance.
func TestAnInstanceOfAnEarlierProcessIsShownLate(t *testing.T) {
	made := instance{id: "i1", uid: "a", state: "Running"}
	for name, c := range map[string]struct {
		had   bool          // the cluster has it by its status
		shown time.Duration // when the service shows it
		known time.Duration // when it is known at the latest
		lists int           // at most, until then
	}{
		"it ran as the cluster has it": {had: true, shown: 30 * time.Second, known: 42 * time.Second, lists: 6},
		"nobody knows of it":           {shown: 30 * time.Second, known: 3 * time.Minute, lists: 2},
		"it is shown as late as can be": {
			had: true, shown: 119 * time.Second, known: 132 * time.Second, lists: 14,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &service{}
			s.run(t, func(config *Config[instance]) {
				config.Changed = s.changed
				config.Had = func(namespace, name string) bool { return c.had && namespace == "ns" && name == "pod-a" }
			}, func(t *testing.T, cache *Cache[instance], reports *[]string) {
				lists := func() (n int) {
					s.edit(func() { n = s.lists })
					return n
				}
				begun := time.Now()
				made.changed = begun.Add(-20 * time.Second)
				for !cache.has("a") && time.Since(begun) < c.known {
					if time.Since(begun) == c.shown {
						s.edit(func() { s.have = []instance{made} })
					}
					if cache.Complete() {
						t.Fatalf("after %s it is said that the service has none", time.Since(begun))
					}
					if _, _, err := cache.Find("ns", "pod-a"); !errdefs.IsNotFound(err) {
						t.Fatalf("Find: %v", err)
					}
					after(time.Second)
				}
				if !cache.has("a") || lists() > c.lists {
					t.Errorf("after %s and %d lists: known %t", time.Since(begun), lists(), cache.has("a"))
				}
				after(4 * time.Minute)
				if !cache.Complete() || !cache.has("a") {
					t.Errorf("in the end: complete %t, known %t", cache.Complete(), cache.has("a"))
				}
				for before, n := lists(), 0; n < 60; n++ {
					_, _, _ = cache.Find("ns", "pod-b")
					if after(time.Second); lists() > before+1 {
						t.Fatalf("%d lists in %d s at rest", lists()-before, n)
					}
				}
			})
		})
	}
}

// TestNothingIsCompleteInAnOutage: the cache is not complete during an outage, because changes in this time are
// unknown.
func TestNothingIsCompleteInAnOutage(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Running"}}}
	s.run(t, nil, func(t *testing.T, c *Cache[instance], _ *[]string) {
		if c.Complete() {
			t.Error("the first list is said to have all that an earlier process made")
		}
		after(3 * time.Minute)
		if !c.Complete() {
			t.Error("after three minutes it is not known what an earlier process made")
		}
		s.fail(errdefs.NotFound("503"))
		after(10 * time.Second)
		if c.Complete() {
			t.Error("in an outage it is said to be known what there is")
		}
		s.fail(nil)
		after(2 * time.Minute)
		if !c.Complete() {
			t.Error("not after the outage")
		}
	})
}
