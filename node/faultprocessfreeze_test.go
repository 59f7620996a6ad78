// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// effects returns the entries that are effects on pods.
func effects(did []string) []string {
	return slices.DeleteFunc(slices.Clone(did), func(what string) bool { return what == "renew" || what == "list" })
}

// TestFault03FrozenDaemonLooksFirst freezes a daemon while pods come, go and change, with and without another daemon that takes over.
func TestFault03FrozenDaemonLooksFirst(t *testing.T) {
	rounds := 2
	if faultrow.Strict() {
		rounds = 13
	}
	freezes, slowest, after := 0, time.Duration(0), 0
	for _, frozen := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 400 * time.Second} {
		for round := range rounds {
			alone := round%2 == 0
			t.Run(fmt.Sprint(frozen, round), func(t *testing.T) {
				inTwins(t, func(w *twins) {
					c := &twinChurn{Rand: rand.New(rand.NewPCG(uint64(round), 3)), w: w}
					first := w.start("first")
					c.run(20 * time.Second)
					var second *daemon
					if !alone {
						second = w.start("second")
						c.run(10 * time.Second)
					}
					first.freeze()
					if alone {
						w.pass(time.Second)
					}
					w.taken("first")
					c.run(frozen)
					if did := effects(w.taken("first")); len(did) > 0 {
						t.Fatalf("frozen, it did %q", did)
					}
					for i := range 8 { // everything has changed when it resumes
						if w.api.Pod("d", twinPod(i)) != nil {
							w.api.Delete("d", twinPod(i), 0)
						}
					}
					freezes++
					first.heal()
					if alone {
						slowest = max(slowest, first.awaitActing(10*time.Second))
					}
					c.run(30 * time.Second)
					did := w.taken("first")
					switch begin := slices.IndexFunc(did, func(what string) bool { return what != "renew" && what != "list" }); {
					case !alone && (len(effects(did)) > 0 || !second.acts()):
						t.Errorf("it did %q although another daemon has taken over", effects(did))
					case alone && begin < 0:
						t.Error("it did nothing any more")
					case alone && (!slices.Contains(did[:begin], "renew") || !slices.Contains(did[slices.Index(did, "renew"):begin], "list")):
						t.Errorf("it did %q, want a renewal and then a list of its pods before anything else", did[:begin+1])
					}
					after += len(effects(did))
					w.pass(2 * time.Minute)
					w.wantAgreement()
				})
			})
		}
	}
	faultrow.Record(t, 3, fmt.Sprintf("%d freezes of 30, 60, 120 and 400 s in fake time, half of them with a daemon that takes over", freezes),
		"0 of %d effects after a thaw before the lease was renewed and the pods were listed; acts again after %v at most", after, slowest)
}

// A report that was being delivered when the daemon froze is not lost, and is not published after newer states, which the daemon never
// received.
func TestThawedDaemonTellsNothingOld(t *testing.T) {
	inTwins(t, func(w *twins) {
		say := func(word string) {
			w.backend.Change("d/p0", func(p *corev1.Pod) { p.Status.Message = word })
			w.pass(2 * time.Second)
		}
		first := w.start("first")
		w.api.Create(bound("p0", "u"))
		w.pass(5 * time.Second)
		second := w.start("second")
		w.pass(20 * time.Second)
		first.freeze()
		say("one")
		second.awaitActing(15 * time.Second)
		w.pass(time.Second)
		if got := w.api.Pod("d", "p0").Status.Message; got != "one" {
			t.Errorf("after the takeover the pod says %q, want what was reported to the frozen daemon", got)
		}
		w.subscribe("first", nil) // later reports do not even wait for it
		say("two")
		w.taken("first")
		first.heal()
		w.pass(time.Minute)
		if did := effects(w.taken("first")); len(did) > 0 {
			t.Errorf("the thawed daemon did %q", did)
		}
		second.stop()
		first.awaitActing(5 * time.Second)
		w.pass(time.Second)
		if got := w.api.Pod("d", "p0").Status.Message; got != "two" {
			t.Errorf("the pod says %q, want the newest word", got)
		}
	})
}

// An answer that was requested before a gap arrives after it, when the daemon may act again: the answer is from a time when another daemon
// had not created the pod yet.
func TestAnswerFromBeforeAGapIsNotActedOn(t *testing.T) {
	inTwins(t, func(w *twins) {
		first := w.start("first")
		second := w.start("second")
		w.pass(20 * time.Second)
		first.mu.Lock()
		first.slow = time.Minute
		first.mu.Unlock()
		w.api.Create(bound("p0", "u"))
		w.pass(time.Second)
		first.freeze()
		second.awaitActing(15 * time.Second)
		w.pass(5 * time.Second)
		second.stop()
		w.pass(5 * time.Second)
		first.heal()
		first.awaitActing(5 * time.Second)
		w.pass(5 * time.Minute)
		w.wantAgreement()
	})
}

// A daemon whose watch has died silently does not recreate a deleted pod.
func TestThawedDaemonWithAnOldCache(t *testing.T) {
	inTwins(t, func(w *twins) {
		first := w.start("first")
		w.pass(5 * time.Second)
		w.backend.Script(func(_ context.Context, method, _ string) error {
			if method == "create" {
				return memory.ErrUnwell
			}
			return nil
		})
		w.api.Create(bound("p0", "u"))
		w.pass(20 * time.Second)
		first.freeze()
		w.api.Silence()
		w.api.Delete("d", "p0", 0)
		w.api.Create(bound("p1", "v"))
		w.pass(time.Minute)
		w.backend.Script(nil)
		w.taken("first")
		first.heal()
		first.awaitActing(5 * time.Second)
		w.pass(time.Minute)
		if did := effects(w.taken("first")); len(did) > 0 {
			t.Errorf("it did %q, with a cache that is behind", did)
		}
		w.pass(15 * time.Minute) // the watch ends
		w.wantAgreement()
	})
}
