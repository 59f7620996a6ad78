// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestUnansweredPodsAreNotMissed: a list may lack the answer for some pods. The list counts for all other pods;
// the knowledge about the unanswered pods is neither renewed nor forgotten.
func TestUnansweredPodsAreNotMissed(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Running"}, {id: "i2", uid: "b", state: "Running"}, {id: "i3", uid: "c", state: "Running"}}}
	unanswered := Unanswered{}
	s.run(t, func(c *Config[instance]) {
		c.List = func(ctx context.Context) ([]instance, error) {
			all, err := s.list(ctx)
			s.edit(func() {
				if err == nil && len(unanswered) > 0 {
					err = maps.Clone(unanswered)
				}
			})
			return all, err
		}
	}, func(t *testing.T, c *Cache[instance], reports *[]string) {
		s.has(instance{id: "i1", uid: "a", state: "Failed"})
		s.edit(func() { unanswered["b"] = false })
		after(time.Minute)
		if !c.has("b") || c.has("c") || !slices.Contains(*reports, "a=Failed") {
			t.Errorf("b is there: %t, c is there: %t, reports %v", c.has("b"), c.has("c"), *reports)
		}
		if err, _ := c.LastError(); err != nil || !c.Synced() {
			t.Errorf("LastError: %v", err)
		}
		s.edit(func() { delete(unanswered, "b") })
		after(6 * time.Second) // one list lacks it
		known := c.Known()
		at := slices.IndexFunc(known, func(k Known[instance]) bool { return k.Instance.uid == "b" })
		if at < 0 || known[at].Missing == 0 || known[at].Pod.UID != "b" {
			t.Fatalf("got %+v", known)
		}
		missing := known[at].Missing
		s.edit(func() { unanswered["b"] = false })
		after(time.Minute)
		known = c.Known()
		if at = slices.IndexFunc(known, func(k Known[instance]) bool { return k.Instance.uid == "b" }); at < 0 || known[at].Missing != missing {
			t.Errorf("lists without an answer count, or have it seen: %+v, want %d lists that lack it", known, missing)
		}
		s.edit(func() { unanswered["b"] = true })
		after(time.Minute)
		if known = c.Known(); known[0].Missing*known[len(known)-1].Missing != 0 {
			t.Errorf("it was asked for, and lists of before count: %+v", known)
		}
		s.edit(func() { delete(unanswered, "b") })
		after(time.Minute)
		if c.has("b") {
			t.Error("not lost by lists that are complete")
		}
	})
}

// TestDoubtedDeletionIsConfirmedByLists: a doubted pod stays, even if it has ended, until lists lack it or the
// service accepts its deletion.
func TestDoubtedDeletionIsConfirmedByLists(t *testing.T) {
	ended := instance{id: "i1", uid: "a", state: "Succeeded", deleted: true}
	for _, accepted := range []bool{false, true} {
		s := &service{have: []instance{ended}}
		s.run(t, nil, func(t *testing.T, c *Cache[instance], _ *[]string) {
			c.Doubted("a")
			after(time.Minute)
			if !c.has("a") || !c.Known()[0].Stopping {
				t.Fatalf("lists have it, and it is gone: %+v", c.Known())
			}
			if accepted {
				c.Stopping("a")
			} else {
				s.has()
				after(time.Minute)
			}
			if c.has("a") {
				t.Errorf("it is not gone; accepted: %t", accepted)
			}
		})
	}
}

// TestSoonIsWhenAHurriedRoundIs.
func TestSoonIsWhenAHurriedRoundIs(t *testing.T) {
	s := &service{}
	s.run(t, func(c *Config[instance]) { c.Soon = 100 * time.Millisecond }, func(t *testing.T, c *Cache[instance], _ *[]string) {
		after(10 * time.Second)
		lists := func() (n int) {
			s.edit(func() { n = s.lists })
			return n
		}
		before := lists()
		c.Hurry()
		after(99 * time.Millisecond)
		if lists() != before {
			t.Error("it was too soon")
		}
		if after(time.Millisecond); lists() != before+1 {
			t.Errorf("%d rounds, want 1", lists()-before)
		}
	})
}

// TestAnnotationsOfAnInstanceAreThePods: a pod gets the annotations of its instance. A new annotation alone
// causes a report, and an update of the pod keeps it. Pods that were returned before do not change.
func TestAnnotationsOfAnInstanceAreThePods(t *testing.T) {
	s := &service{}
	s.run(t, func(c *Config[instance]) {
		c.Annotations = func(i instance) map[string]string {
			if i.changed.IsZero() {
				return nil
			}
			return map[string]string{"instance": i.id}
		}
	}, func(t *testing.T, c *Cache[instance], reports *[]string) {
		pod := podOf("a")
		pod.Annotations = map[string]string{"own": "one"}
		c.Accepted(pod, instance{id: "i1", uid: "a", state: "Running"})
		first, _, _ := c.Get("a")
		c.Take(t.Context(), time.Now(), instance{id: "i1", uid: "a", state: "Running", changed: time.Now()})
		got, _, _ := c.Get("a")
		if got.Annotations["instance"] != "i1" || got.Annotations["own"] != "one" || len(*reports) != 2 {
			t.Errorf("annotations %v, reports %v", got.Annotations, *reports)
		}
		if first.Annotations["instance"] != "" || pod.Annotations["instance"] != "" {
			t.Error("a pod that was handed out has changed")
		}
		next := podOf("a")
		next.Annotations = map[string]string{"own": "two"}
		c.Update(next)
		if got, _, _ := c.Get("a"); got.Annotations["instance"] != "i1" || got.Annotations["own"] != "two" {
			t.Errorf("after an update: %v", got.Annotations)
		}
		n := len(*reports)
		c.Update(&corev1.Pod{ObjectMeta: got.ObjectMeta, Spec: got.Spec})
		if len(*reports) != n {
			t.Error("nothing has changed, and it was reported")
		}
	})
}

// TestSecondInstanceIsToldWithoutALock: Double may call the slow service, so it is called without a lock, and
// other pods are accepted meanwhile.
func TestSecondInstanceIsToldWithoutALock(t *testing.T) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Running", created: created}, {id: "i2", uid: "a", state: "Running", created: created.Add(time.Second)}}}
	var c *Cache[instance]
	told := 0
	s.run(t, func(config *Config[instance]) {
		config.Busy, config.Rest, config.Idle = time.Minute, time.Minute, time.Minute
		config.Double = func(context.Context, instance) {
			if c == nil { // of the first round
				return
			}
			if told++; c.order.TryLock() {
				c.order.Unlock()
			} else {
				t.Error("a pod that is accepted now waits")
			}
		}
	}, func(_ *testing.T, cache *Cache[instance], _ *[]string) {
		s.edit(func() { c = cache })
		after(2 * time.Minute)
		if told == 0 {
			t.Error("nobody was told")
		}
	})
}
