// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestServiceThatPushesNeedsNoRounds: the lists and failures of a service that pushes count as those of rounds
// do. If the first list has everything that earlier processes made, it is complete at once.
func TestServiceThatPushesNeedsNoRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		c := New(Config[instance]{
			List: s.list, EarlierWithin: -1,
			Identify: func(i instance) (Identity, bool) { return Identity{UID: podOf(i.uid).UID, ID: i.id}, true },
			Status: func(_ *corev1.Pod, i instance) corev1.PodStatus {
				return corev1.PodStatus{Phase: corev1.PodPhase(i.state)}
			},
		})
		if c.Synced() || c.Complete() {
			t.Error("before its first list the pods are known")
		}
		one, two := instance{id: "i1", uid: "a", state: "Running"}, instance{id: "i2", uid: "b", state: "Running"}
		c.TakeAll(t.Context(), time.Now(), []instance{one, two})
		if !c.Synced() || !c.Complete() || !c.has("a") || !c.has("b") {
			t.Error("the first list has not told all pods")
		}
		away := errors.New("the stream is away")
		if c.Fails(away); c.Complete() || c.Away() != nil {
			t.Errorf("after one failure: complete %t, %v", c.Complete(), c.Away())
		}
		if c.Fails(away); !errors.Is(c.Away(), away) {
			t.Errorf("after two failures: %v", c.Away())
		}
		if c.Fails(nil); !c.Complete() || c.Away() != nil {
			t.Errorf("after the outage: complete %t, %v", c.Complete(), c.Away())
		}
		for range lostAfter {
			time.Sleep(time.Second) // in a bubble
			c.TakeAll(t.Context(), time.Now(), []instance{one})
		}
		if !c.has("a") || c.has("b") {
			t.Error("lists that lack a pod were not believed")
		}
		if s.lists+s.changes > 0 {
			t.Error("the service was asked")
		}
	})
}
