// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestALifeAsksForThePodTwice: a cloud backend limits requests. The node asks it once before the create, because the pod may exist, and
// once after the reported end, to confirm the stop.
func TestALifeAsksForThePodTwice(t *testing.T) {
	for _, stopTime := range []time.Duration{0, time.Millisecond, 20 * time.Second} {
		for _, keeps := range []bool{false, true} {
			t.Run(fmt.Sprint(stopTime, " keepsEnded=", keeps), func(t *testing.T) {
				b := memory.New()
				b.StopTime, b.KeepsEnded = stopTime, keeps
				inWorld(t, b, func(w *world) {
					var asked atomic.Int64 // only while the pod exists
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

// TestAStopIsConfirmedWithoutAReport: a backend may remove a pod without a report.
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

// TestAStopOfASilentProviderIsConfirmedAtOnce: there will be no report to wait for.
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
