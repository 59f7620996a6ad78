// SPDX-License-Identifier: Apache-2.0

package node

import (
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestFault45ClockThatIsSetChangesNoPod: the wall clock jumps by an hour; pods with half an hour until their deadline still have half an
// hour.
func TestFault45ClockThatIsSetChangesNoPod(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 5 * time.Minute} {
		b := memory.New()
		inWorld(t, b, func(w *world) {
			var ahead atomic.Int64
			w.wall = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			w.start()
			p := bound("p", "a")
			p.Spec.ActiveDeadlineSeconds = ptr.To[int64](1800)
			w.api.Create(p)
			w.pass(10 * time.Minute)
			before := w.api.Pod("d", "p").Status
			ahead.Store(int64(jump))
			w.pass(19 * time.Minute)
			if after := w.api.Pod("d", "p").Status; after.Phase != corev1.PodRunning || len(b.Calls()) != 1 {
				t.Errorf("after the clock was set by %v, the pod is %s (%s), it was %s; calls %q", jump, after.Phase, after.Reason, before.Phase, b.Calls())
			}
			w.pass(2 * time.Minute)
			if s := w.api.Pod("d", "p").Status; s.Phase != corev1.PodFailed || s.Reason != eventDeadline {
				t.Errorf("the pod is %s (%s) after its 30 minutes, want failed for its deadline", s.Phase, s.Reason)
			}
		})
	}
	faultrow.Record(t, 45, "the wall clock jumps by 1 h, -1 h, 5 min with 20 min of activeDeadlineSeconds left",
		"0 state changes; each pod lives its 30 min to the minute")
}
