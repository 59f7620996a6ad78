// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// runPods runs pods p<from> to p<to-1>.
func (w *world) runPods(from, to int) {
	w.Helper()
	for i := from; i < to; i++ {
		w.api.Create(bound(fmt.Sprint("p", i), ""))
	}
	w.pass(5 * time.Second)
}

// TestFault14OlderViewDeletesNothing: one of several API servers lags behind, and shows a past in which most of the pods did not exist.
func TestFault14OlderViewDeletesNothing(t *testing.T) {
	const pods, rounds = 100, 10
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.runPods(0, 10)
		past := w.api.Revision()
		w.runPods(10, pods)
		calls := len(b.Calls())
		for i := range rounds {
			w.api.Lag(past, i%2 == 0)
			if i%3 == 0 {
				w.halt()
				w.start()
			}
			w.pass(2 * time.Minute)
			w.api.CatchUp()
			w.pass(time.Minute)
		}
		if n := len(b.Calls()) - calls; n != 0 || b.Len() != pods {
			t.Errorf("%d calls changed the backend, which has %d pods; want 0 and %d: %q", n, b.Len(), pods, b.Calls()[calls:])
		}
		faultrow.Record(t, 14, fmt.Sprintf("%d times an API server that lacks %d of %d pods, for 2 min, also at a restart", rounds, pods-10, pods),
			"0 of %d pods deleted or created again", rounds*(pods-10))
	})
}

// TestFault18RestoredAPIServerIsNotBelieved: pods that a restored backup lacks were not deleted by anyone. They are held, and new pods run.
func TestFault18RestoredAPIServerIsNotBelieved(t *testing.T) {
	const pods = 100
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.runPods(0, 40)
		backup := w.api.Revision()
		b.Change("d/p0", func(p *corev1.Pod) { p.Status.Message = "after the backup" })
		w.runPods(40, pods)
		w.api.Restore(backup)
		restored := time.Now()
		w.pass(3 * time.Second)
		w.api.Create(bound("new", ""))
		w.pass(5 * time.Second)
		w.wantPhase("new", corev1.PodRunning)
		w.pass(4*time.Minute - time.Since(restored))
		if n := b.Len(); n != pods+1 {
			t.Errorf("%d pods are left at the backend after four minutes, want %d", n, pods+1)
		}
		if got := w.api.Pod("d", "p0").Status.Message; got != "after the backup" {
			t.Errorf("the message of p0 is %q: what was written after the backup is lost", got)
		}
		w.pass(10 * time.Minute) // enough time for users to save them
		if n := b.Len(); n != 41 {
			t.Errorf("%d pods are left at the backend in the end, want 41", n)
		}
		faultrow.Record(t, 18, fmt.Sprintf("restore of a backup that lacks %d of %d pods; versions go back", pods-40, pods),
			"0 deletes for %v, with an alarm; a new pod runs within 8 s, lost statuses are written again", defaultQuarantine)
	})
}

// TestWriteThatARestoreTookBack: the backup is older than a write that the watch had not shown yet, so that a client cannot detect that the
// API server went back in time.
func TestWriteThatARestoreTookBack(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.runPods(0, 3)
		backup := w.api.Revision()
		w.api.Silence()
		b.Change("d/p0", func(p *corev1.Pod) { p.Status.Message = "after the backup" })
		w.pass(time.Second)
		if got := w.api.Pod("d", "p0").Status.Message; got != "after the backup" {
			t.Fatalf("the message of p0 is %q before the restore", got)
		}
		w.api.Restore(backup)
		w.pass(2*believeAnswer + time.Second)
		if got := w.api.Pod("d", "p0").Status.Message; got != "after the backup" {
			t.Errorf("the message of p0 is %q: what was written after the backup is lost", got)
		}
	})
}

// TestFault51PartitionLongerThanTolerated: pods that were evicted and deleted during a network partition are stopped afterwards: a few at
// once, many only after the quarantine, because a restored backup looks the same.
func TestFault51PartitionLongerThanTolerated(t *testing.T) {
	for _, tt := range []struct {
		evicted int
		within  time.Duration
		told    string
	}{
		{20, 10 * time.Second, ""},
		{60, defaultQuarantine + 20*time.Second, "True False"},
	} {
		t.Run(fmt.Sprint(tt.evicted), func(t *testing.T) { partition(t, tt.evicted, tt.within, tt.told) })
	}
}

func partition(t *testing.T, evicted int, within time.Duration, told string) {
	const pods = 100
	b, seen := memory.New(), &nodeConditions{}
	var cut atomic.Bool
	inWorld(t, b, func(w *world) {
		w.api.Fault = func(_, _, _ string) error {
			if cut.Load() {
				return errors.New("no route to host")
			}
			return nil
		}
		w.start()
		w.runPods(0, pods)
		calls := len(b.Calls())
		cut.Store(true)
		w.api.Silence()
		w.pass(5 * time.Minute)
		for i := range evicted {
			w.api.Delete("d", fmt.Sprint("p", i), 30)
		}
		w.pass(time.Minute)
		for i := range evicted {
			w.api.Delete("d", fmt.Sprint("p", i), 0)
		}
		w.pass(time.Minute)
		if n := len(b.Calls()) - calls; n != 0 {
			t.Errorf("%d calls changed the backend during the partition, want 0", n)
		}
		w.api.Compact() // the watch cannot report the missed events
		w.api.Cut()
		cut.Store(false)
		took := w.until("the evicted pods are stopped", within, func() bool { return b.Len() == pods-evicted })
		w.pass(10 * time.Minute)
		if b.Len() != pods-evicted {
			t.Errorf("%d pods run in the end, want %d", b.Len(), pods-evicted)
		}
		if got, message := seen.statuses(); got != told {
			t.Errorf("the condition of the node was %q (%s), want %q", got, message, told)
		}
		faultrow.Record(t, 51, fmt.Sprintf("7 min without the API server; %d of %d pods evicted and removed meanwhile", evicted, pods),
			"pods stay as they are during the partition; the last evicted one was stopped %v after it; leaks 0", took)
	}, onNode, seen.configure)
}

// TestNewerPodOfTheNameProvesTheDeletion: while an API server that lacks many pods is doubted, a new pod of the same name still proves a
// deletion.
func TestNewerPodOfTheNameProvesTheDeletion(t *testing.T) {
	const pods, again = 20, 5 // without these, many are missing
	undated := func(p *corev1.Pod) { p.CreationTimestamp = metav1.Time{} }
	for name, lossy := range map[string]func(*corev1.Pod){"restart": nil, "backend without times": undated} {
		t.Run(name, func(t *testing.T) {
			b, restart := memory.New(), name == "restart"
			b.Lossy = lossy
			inWorld(t, b, func(w *world) {
				w.start()
				w.runPods(0, pods)
				if restart {
					w.halt()
				} else {
					w.api.Silence()
				}
				for i := range pods {
					w.api.Delete("d", fmt.Sprint("p", i), 0)
				}
				for i := range again {
					w.api.Create(bound(fmt.Sprint("p", i), ""))
				}
				w.api.Compact()
				w.api.Cut()
				if restart {
					w.start()
				}
				w.until("the new pods run", 30*time.Second, func() bool { return w.allRun("p", again) })
				if n := b.Len(); n != pods {
					t.Errorf("the backend has %d pods, want the %d new and the %d held ones", n, again, pods-again)
				}
			}, onNode)
		})
	}
}
