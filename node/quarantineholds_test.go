// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// running returns the number of pods that run at the backend.
func running(b *memory.Backend, prefix string, n int) (count int) {
	for i := range n {
		if p := b.Has(fmt.Sprint("d/", prefix, i)); p != nil && p.Status.Phase == corev1.PodRunning {
			count++
		}
	}
	return count
}

// TestEndedPodsDoNotDiluteTheOrphans: ended pods that the backend keeps prove nothing about running pods.
func TestEndedPodsDoNotDiluteTheOrphans(t *testing.T) {
	b := memory.New()
	b.KeepsEnded = true
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("job", 200, corev1.RestartPolicyNever)
		for i := range 200 {
			b.Change(fmt.Sprint("d/job", i), func(p *corev1.Pod) { *p = *memory.Ended(p, 0) })
		}
		w.pass(10 * time.Second)
		for i := range 200 {
			w.api.Delete("d", fmt.Sprint("job", i), 0)
		}
		w.pass(time.Minute)
		backup := w.api.Revision()
		w.runWith("p", 40, corev1.RestartPolicyAlways)
		w.api.Restore(backup)
		w.pass(time.Minute)
		if got := running(b, "p", 40); got != 40 {
			w.Errorf("%d of 40 pods run a minute after the restore", got)
		}
		w.pass(10 * time.Minute)
	}, onNode)
}

// TestDeletionsInTheDarkAreNotConfirmed: all pods, or one, are deleted while the backend returns none of them.
func TestDeletionsInTheDarkAreNotConfirmed(t *testing.T) {
	for _, polled := range []bool{false, true} {
		for _, n := range []int{1, 100} {
			t.Run(fmt.Sprintf("%d of 100, polled=%v", n, polled), func(t *testing.T) {
				b := memory.New()
				configs := []func(*PodControllerConfig){onNode}
				if polled {
					configs = append(configs, silent)
				}
				inWorld(t, b, func(w *world) {
					w.start()
					w.runWith("p", 100, corev1.RestartPolicyAlways)
					b.Lie(memory.Lie{Empty: true, Reads: true, Deletes: true})
					w.pass(3 * time.Second)
					for i := range n {
						w.api.Delete("d", fmt.Sprint("p", i), 30)
					}
					w.pass(20 * time.Second)
					if got := w.api.Len(); got != 100 {
						w.Errorf("%d of 100 pods are in the API server while all of them run", got)
					}
					b.Truth()
					w.until("the deleted ones are gone on both sides", time.Minute, func() bool { return w.api.Len() == 100-n && b.Len() == 100-n })
				}, configs...)
			})
		}
	}
}

// TestSilenceConfirmsNoAcknowledgedStop: a backend becomes unavailable during a slow stop.
func TestSilenceConfirmsNoAcknowledgedStop(t *testing.T) {
	b := memory.New()
	b.StopTime = 25 * time.Second
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("p", 5, corev1.RestartPolicyAlways)
		w.api.Delete("d", "p0", 30)
		w.pass(2 * time.Second)
		b.Mute()
		b.Lie(memory.Lie{Empty: true})
		b.Inject(memory.Fault{Method: memory.Get, Err: errors.New("connection refused")})
		b.Inject(memory.Fault{Method: memory.Status, Err: errors.New("connection refused")})
		w.pass(20 * time.Second)
		if w.api.Pod("d", "p0") == nil {
			w.Error("the pod is gone from the API server while its instance runs")
		}
		w.until("the acknowledgement counts in the end", time.Minute, func() bool { return w.api.Pod("d", "p0") == nil })
	}, onNode)
}

// TestFailedLookupShowsNothing: a timeout does not count as showing a hidden new pod.
func TestFailedLookupShowsNothing(t *testing.T) {
	b := memory.New()
	b.ShowsAfter = 20 * time.Second
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("o", 5, corev1.RestartPolicyAlways)
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		b.Inject(memory.Fault{Method: memory.Get, Key: "d/p", Times: 1, Err: context.DeadlineExceeded})
		b.Lie(memory.Lie{Page: 5, Reads: true, Deletes: true, For: 19 * time.Second})
		w.api.Delete("d", "p", 30)
		w.pass(5 * time.Second)
		if w.api.Pod("d", "p") == nil {
			w.Error("the pod is gone from the API server while its instance runs")
		}
		w.until("it is gone on both sides", 2*time.Minute, func() bool { return w.api.Pod("d", "p") == nil && len(b.Instances("a")) == 0 })
	}, onNode)
}

// TestNewPodsDoNotLetADoubtBeginAnew: the backend shows new pods late, and has really lost others.
func TestNewPodsDoNotLetADoubtBeginAnew(t *testing.T) {
	b, seen := memory.New(), &nodeConditions{}
	b.ShowsAfter = 6 * time.Second
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("p", 40, corev1.RestartPolicyNever)
		if got, message := seen.statuses(); got != "" {
			w.Errorf("the node said %s after pods were merely created: %s", got, message)
		}
		for i := range 30 {
			b.Lose(fmt.Sprint("d/p", i))
		}
		b.Script(func(_ context.Context, method, key string) error {
			if method == memory.Get && key == "d/p39" {
				return errdefs.NotFound("no such name") // the list has it
			}
			return nil
		})
		w.ctl.suspectPod("d/p39")
		for i := range 4 {
			w.api.Create(bound(fmt.Sprint("new", i), ""))
			w.pass(2 * time.Minute)
		}
		if got := w.phases("p", 30)[corev1.PodFailed]; got != 30 {
			w.Errorf("%d of 30 lost pods have failed after 8 min", got)
		}
		w.wantPhase("p39", corev1.PodRunning)
	}, onNode, silent, seen.configure)
}

// TestNotFoundCountsOnlyWithAList: a backend that cannot list its pods may not find them by name either.
func TestNotFoundCountsOnlyWithAList(t *testing.T) {
	for _, polled := range []bool{false, true} {
		t.Run(fmt.Sprintf("polled=%v", polled), func(t *testing.T) {
			b := memory.New()
			configs := []func(*PodControllerConfig){onNode}
			if polled {
				configs = append(configs, silent)
			}
			inWorld(t, b, func(w *world) {
				w.start()
				w.runWith("p", 100, corev1.RestartPolicyNever)
				b.Inject(memory.Fault{Method: memory.List, Err: errors.New("the cache is not filled")})
				for _, method := range []string{memory.Get, memory.Status, memory.Update} {
					b.Inject(memory.Fault{Method: method, Err: errdefs.NotFound("no such pod")})
				}
				for i := range 5 {
					w.api.Change("d", fmt.Sprint("p", i), func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} })
				}
				w.pass(30 * time.Second)
				b.Heal()
				w.pass(time.Minute)
				if got := running(b, "p", 100); got != 100 || w.phases("p", 100)[corev1.PodRunning] != 100 {
					w.Errorf("%d of 100 instances run, phases are %v", got, w.phases("p", 100))
				}
			}, configs...)
		})
	}
}

// TestAuthorityIsAskedBeforeTheAnswer: an answer that was requested before the cache was filled is incomplete.
func TestAuthorityIsAskedBeforeTheAnswer(t *testing.T) {
	for filledAfter := 13 * time.Second; filledAfter < 15*time.Second; filledAfter += 390 * time.Millisecond {
		b, complete := memory.New(), &atomic.Bool{}
		inWorld(t, b, func(w *world) {
			complete.Store(true)
			w.start()
			w.runWith("p", 20, corev1.RestartPolicyNever)
			w.halt()
			complete.Store(false)
			b.Script(func(_ context.Context, method, _ string) error {
				if method != memory.Get && method != memory.Status || complete.Load() {
					return nil
				}
				<-time.After(100 * time.Millisecond) // the answer is delayed
				return errdefs.NotFound("no such pod")
			})
			b.Lie(memory.Lie{Empty: true, For: filledAfter})
			time.AfterFunc(filledAfter, func() { complete.Store(true) })
			w.start()
			w.pass(2 * time.Minute)
			if got := running(b, "p", 20); got != 20 {
				w.Errorf("filled after %v: %d of 20 pods run", filledAfter, got)
			}
			b.Script(nil)
		}, onNode, func(cfg *PodControllerConfig) { cfg.Provider = authority{memory.Notifying{Backend: b}, complete} })
	}
}

// TestWhatWasDecidedIsDecidedPodByPod: orphans that cannot be deleted do not end the protection of others.
func TestWhatWasDecidedIsDecidedPodByPod(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("p", 20, corev1.RestartPolicyAlways)
		backup := w.api.Revision()
		w.runWith("x", 20, corev1.RestartPolicyAlways)
		for i := range 20 {
			b.Inject(memory.Fault{Method: memory.Delete, Key: fmt.Sprint("d/x", i), Err: errors.New("not permitted")})
		}
		w.api.Restore(backup)
		w.pass(10 * time.Minute)
		backup = w.api.Revision()
		w.runWith("y", 40, corev1.RestartPolicyAlways)
		w.api.Restore(backup)
		w.pass(time.Minute)
		if got := running(b, "y", 40); got != 40 {
			w.Errorf("%d of 40 pods run a minute after the second restore", got)
		}
	}, onNode)
}

// TestMissingPodThatWentIsForgotten: a pod that was recorded as missing while it was deleted does not count forever.
func TestMissingPodThatWentIsForgotten(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("p", 2, corev1.RestartPolicyAlways)
		w.ctl.worker.missing.noteMissing("d/gone", time.Now(), true, false)
		w.pass(10 * time.Minute)
		w.ctl.worker.missing.mu.Lock()
		defer w.ctl.worker.missing.mu.Unlock()
		if n := len(w.ctl.worker.missing.missing); n != 0 {
			w.Errorf("%d pods are missing in the end", n)
		}
	}, onNode)
}

// TestRelistBeginsWhenTheLeaseTurnsOutToBeForbidden: the relist starts without a notification that this process acts for the node.
func TestRelistBeginsWhenTheLeaseTurnsOutToBeForbidden(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		f := lease.NewFence()
		w.fence = f
		w.start()
		w.pass(12 * time.Second)
		f.Disable()
		w.runWith("p", 3, corev1.RestartPolicyNever)
		b.Lose("d/p0")
		w.until("the lost pod has failed", time.Minute, func() bool { return w.phase("p0") == corev1.PodFailed })
	}, onNode)
}

// TestLostPodIsNotHeldByPodsThatNobodyWants: users delete all missing pods, a list fails sometimes, and later a single pod is lost.
func TestLostPodIsNotHeldByPodsThatNobodyWants(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.runWith("p", 4, corev1.RestartPolicyNever)
		for i := range 3 {
			b.Lose(fmt.Sprint("d/p", i))
		}
		w.pass(30 * time.Second) // most of the pods are missing
		for i := range 3 {
			w.api.Delete("d", fmt.Sprint("p", i), 0) // these pods are no longer wanted
		}
		w.runWith("new", 1, corev1.RestartPolicyNever)
		w.pass(2 * time.Minute)
		b.Lose("d/new0")
		for range 3 {
			b.Inject(memory.Fault{Method: memory.List, Err: errors.New("throttled"), Times: 1})
			w.pass(4 * time.Minute)
		}
		w.wantPhase("new0", corev1.PodFailed)
	}, onNode)
}

// TestDeletedPodGoesThoughListsNeverWork: a backend answers only for single pods. A pod that it never had is removed soon, any other pod
// after it was missing for the whole quarantine.
func TestDeletedPodGoesThoughListsNeverWork(t *testing.T) {
	for _, tt := range []struct {
		name   string
		create error
		within time.Duration
	}{
		{"it was never made", errors.New("no capacity"), 20 * time.Second},
		{"it was made and lost", nil, defaultQuarantine + 20*time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := memory.New()
			b.Inject(memory.Fault{Method: memory.List, Err: errors.New("forbidden")})
			if tt.create != nil {
				b.Inject(memory.Fault{Method: memory.Create, Err: tt.create})
			}
			inWorld(t, b, func(w *world) {
				w.start()
				w.api.Create(bound("p", "a"))
				w.pass(time.Minute)
				if tt.create == nil {
					b.Lose("d/p")
				}
				w.api.Delete("d", "p", 5)
				w.until("the pod is gone", tt.within, func() bool { return w.api.Len() == 0 })
			}, onNode)
		})
	}
}

// TestADoubtOutlastsWhatIsNotWantedAnyMore checks the rules for pods that leave a quarantine, at the given seconds after it began with pods
// a and b, which the side both lacks.
func TestADoubtOutlastsWhatIsNotWantedAnyMore(t *testing.T) {
	const period = time.Minute
	begin := time.Now()
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	for name, tt := range map[string]struct {
		does func(ctx context.Context, q *quarantine)
		at   int  // when the pod is processed
		held bool // the node must not act on pod a
	}{
		"both left":            {func(_ context.Context, q *quarantine) { q.releaseUnwanted("a", at(1)); q.releaseUnwanted("b", at(1)) }, 10, true},
		"both were dealt with": {func(_ context.Context, q *quarantine) { q.forgetPod("a"); q.forgetPod("b") }, 10, false},
		"both left, and new ones do not show": {func(ctx context.Context, q *quarantine) {
			q.releaseUnwanted("a", at(1))
			q.releaseUnwanted("b", at(1))
			q.takeList(ctx, nil, []lackedPod{{"c", true}, {"d", true}}, at(2))
		}, 4, true},
		"both left, and five others show": {func(ctx context.Context, q *quarantine) {
			q.releaseUnwanted("a", at(1))
			q.releaseUnwanted("b", at(1))
			q.takeList(ctx, []string{"c", "d", "e", "f", "g"}, nil, at(2))
		}, 4, false},
		"both left, and three others show": {func(ctx context.Context, q *quarantine) {
			q.releaseUnwanted("a", at(1))
			q.releaseUnwanted("b", at(1))
			q.takeList(ctx, []string{"c", "d", "e"}, nil, at(2))
		}, 4, false},
		"one that is new left": {func(ctx context.Context, q *quarantine) {
			q.noteMissing("c", at(2), true, true)
			q.forgetPod("a")
			q.forgetPod("b")
			q.releaseUnwanted("c", at(1))
		}, 4, false},
		"one is denied again and leaves": {func(ctx context.Context, q *quarantine) {
			q.releaseUnwanted("b", at(1))
			q.takeList(ctx, []string{"c"}, []lackedPod{{"a", false}, {"b", false}}, at(2))
			q.releaseUnwanted("b", at(2))
		}, 4, true},
		"the time is over": {func(ctx context.Context, q *quarantine) {
			q.releaseUnwanted("a", at(1))
			q.releaseUnwanted("b", at(1))
			q.reviewCount(ctx, at(61))
		}, 63, false},
		"it was decided about them": {func(ctx context.Context, q *quarantine) {
			q.reviewCount(ctx, at(61)) // they are decided
			q.takeList(ctx, nil, []lackedPod{{"a", false}, {"b", false}, {"c", false}, {"d", false}, {"e", false}, {"f", false}}, at(62))
			for _, key := range []string{"c", "d", "e", "f"} {
				q.noteMissing(key, at(62), true, false)
			}
			q.reviewCount(ctx, at(64)) // another doubt begins
			for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
				if key < "c" {
					q.releaseUnwanted(key, at(65))
				} else {
					q.forgetPod(key)
				}
			}
		}, 66, false},
		"a new term": {func(ctx context.Context, q *quarantine) {
			q.releaseUnwanted("a", at(1))
			q.releaseUnwanted("b", at(1))
			q.forgetAll(ctx, at(2))
		}, 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQuarantine("the backend", period, func(context.Context) {})
			q.takeList(t.Context(), nil, []lackedPod{{"a", false}, {"b", false}}, begin)
			q.noteMissing("a", begin, true, false)
			q.noteMissing("b", begin, true, false)
			if q.holdFor(t.Context(), "a", false, at(1)) == 0 {
				t.Fatal("there is no doubt")
			}
			tt.does(t.Context(), q)
			if held := q.holdFor(t.Context(), "a", false, at(tt.at)); (held > 0) != tt.held {
				t.Errorf("a is held for %v, want held: %t", held, tt.held)
			}
		})
	}
	quiet := newQuarantine("the backend", period, func(context.Context) {})
	quiet.takeList(t.Context(), nil, []lackedPod{{"a", false}}, begin)
	quiet.releaseUnwanted("a", at(1))
	quiet.takeList(t.Context(), []string{"c"}, []lackedPod{{"b", false}}, at(2))
	quiet.noteMissing("b", at(2), true, false)
	if held := quiet.holdFor(t.Context(), "b", false, at(8)); held > 0 {
		t.Errorf("one of two is held for %v, as another one left when there was no doubt", held)
	}
}
