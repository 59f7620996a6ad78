// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestALifeAsksForThePodTwice: a backend in a cloud counts requests. It is asked before a pod is created, since it may have it
// already, and after its end was reported, to be sure that it has stopped.
func TestALifeAsksForThePodTwice(t *testing.T) {
	for _, stopTime := range []time.Duration{0, time.Millisecond, 20 * time.Second} {
		for _, keeps := range []bool{false, true} {
			t.Run(fmt.Sprint(stopTime, " keepsEnded=", keeps), func(t *testing.T) {
				b := memory.New()
				b.StopTime, b.KeepsEnded = stopTime, keeps
				inWorld(t, b, func(w *world) {
					var asked atomic.Int64 // while it exists: of what is no longer there, the backend may have a rest
					b.Fault = func(_ context.Context, method, _ string) error {
						if method == memory.Get && w.api.Len() > 0 {
							asked.Add(1)
						}
						return nil
					}
					w.start()
					w.api.Create(bound("p", "a"))
					w.pass(time.Minute)
					w.wantPhase("p", corev1.PodRunning)
					if n := asked.Load(); n != 1 {
						t.Errorf("%d GetPods for a pod that was created, want 1", n)
					}
					w.api.Delete("d", "p", 30)
					w.pass(200 * time.Millisecond) // less than lifecycle.ReportedWithin
					if stopTime > time.Second {
						if n := asked.Load(); n != 1 {
							t.Errorf("%d GetPods, want 1: nothing was reported since the stop was asked for", n)
						}
						w.pass(stopTime)
					}
					if n := w.api.Len(); n != 0 {
						t.Errorf("%d pods are left", n)
					}
					wantCalls(t, b, "create d/p", "delete d/p")
					if n := asked.Load(); stopTime <= time.Second && n > 2 {
						t.Errorf("%d GetPods in the life of a pod, want at most 2", n)
					}
				})
			})
		}
	}
}

// TestAStopIsConfirmedWithoutAReport: a backend may take a pod away without a word.
func TestAStopIsConfirmedWithoutAReport(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		b.Reports(memory.Reports{Delay: time.Hour})
		w.api.Delete("d", "p", 30)
		w.pass(time.Second)
		if n := w.api.Len(); n != 0 {
			t.Errorf("%d pods are left a second after the stop, of which there was no report", n)
		}
	})
}

// TestAStopOfASilentProviderIsConfirmedAtOnce: nothing will be reported.
func TestAStopOfASilentProviderIsConfirmedAtOnce(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Minute)
		w.api.Delete("d", "p", 30)
		w.pass(lifecycle.ReportedWithin / 2)
		if n := w.api.Len(); n != 0 {
			t.Errorf("%d pods are left, want none: the backend has stopped it", n)
		}
	}, silent)
}

// TestALookPrecedesAStopThatMayBeAnothers: the first stop asks nothing only where the pod alone is known under its name.
func TestALookPrecedesAStopThatMayBeAnothers(t *testing.T) {
	known := func() *podState {
		st := &podState{}
		st.sent.UID, st.sent.Accepted, st.sent.Shown = "a", true, true
		st.report = &report{uid: "a", status: &corev1.PodStatus{Phase: corev1.PodRunning}}
		return st
	}
	deleted := bound("p", "a")
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	if !known().stopsUnseen(deleted) {
		t.Error("a pod that is reported as running is looked for before its stop")
	}
	for name, change := range map[string]func(st *podState){
		"an older pod of the name":        func(st *podState) { st.previous = "old" },
		"another pod of the name":         func(st *podState) { st.shared = true },
		"one that ended and is kept":      func(st *podState) { uid := st.sent.UID + "x"; st.left = &uid },
		"a second one":                    func(st *podState) { st.duplicate = &duplicate{} },
		"one that only the backend has":   func(st *podState) { st.orphan.present = true },
		"no report":                       func(st *podState) { st.report = nil },
		"a report without a UID":          func(st *podState) { st.report.uid = "" },
		"an answer and no report":         func(st *podState) { st.report.polled = true },
		"a report of its end":             func(st *podState) { st.report.status.Phase = corev1.PodFailed },
		"a pod that is not accepted":      func(st *podState) { st.sent.Accepted = false },
		"a pod that no list had":          func(st *podState) { st.sent.Shown = false },
		"a pod that is missing":           func(st *podState) { st.sent.MissingSince = time.Now() },
		"a pod that was asked for a stop": func(st *podState) { st.sent.StopAskedAt = time.Now() },
	} {
		st := known()
		change(st)
		if st.stopsUnseen(deleted) {
			t.Errorf("%s: the pod is stopped without a look", name)
		}
	}
}

// TestNothingIsLeftButTheObject: a pod that has stopped is looked for no more only where nothing else can be under its name.
func TestNothingIsLeftButTheObject(t *testing.T) {
	known := func() *podState {
		st := &podState{stopped: true}
		st.sent.UID = "a"
		st.report = &report{uid: "a", status: &corev1.PodStatus{Phase: corev1.PodFailed}}
		return st
	}
	deleted := bound("p", "a")
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	if st := known(); !st.isRemovable(deleted) || st.isRemovable(bound("p", "a")) || st.isRemovable(bound("p", "b")) || st.isRemovable(nil) {
		t.Error("the deleted pod that has stopped, and no other, is removable")
	}
	if st := known(); !func() bool { uid := st.sent.UID; st.left = &uid; return st.isRemovable(deleted) }() {
		t.Error("a pod that the backend keeps after its end is looked for")
	}
	for name, change := range map[string]func(st *podState){
		"its stop is not confirmed":     func(st *podState) { st.stopped = false },
		"its end is not reported":       func(st *podState) { st.report = nil },
		"it was reported as running":    func(st *podState) { st.relapsed = true },
		"an older pod of the name":      func(st *podState) { st.previous = "old" },
		"another pod of the name":       func(st *podState) { st.shared = true },
		"one that only the backend has": func(st *podState) { st.orphan.present = true },
	} {
		st := known()
		change(st)
		if st.isRemovable(deleted) {
			t.Errorf("%s: the pod is not looked for", name)
		}
	}
}
