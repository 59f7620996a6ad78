// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestActiveDeadlineIsKeptWithoutTheAPIServer: like a kubelet, the node stops a pod at its deadline while the API server does not answer.
// It does nothing else about pods then.
func TestActiveDeadlineIsKeptWithoutTheAPIServer(t *testing.T) {
	seconds := int64(90)
	inTwins(t, func(w *twins) {
		first := w.start("first")
		limited := bound("p0", "limited")
		limited.Spec.ActiveDeadlineSeconds = &seconds
		limited.Spec.RestartPolicy = corev1.RestartPolicyNever
		w.api.Create(limited)
		w.api.Create(bound("p1", "other"))
		w.pass(10 * time.Second)
		first.part()
		w.taken("first")
		w.pass(time.Minute)
		if did := effects(w.taken("first")); len(did) > 0 {
			t.Errorf("before the deadline it did %q", did)
		}
		w.pass(40 * time.Second)
		if did := effects(w.taken("first")); !slices.Equal(did, []string{"delete p0"}) {
			t.Errorf("after the deadline it did %q, want one stop of p0", did)
		}
		w.pass(10 * time.Minute)
		if did := effects(w.taken("first")); len(did) > 0 {
			t.Errorf("in the ten minutes after that it did %q", did)
		}
		first.heal()
		w.pass(time.Minute)
		if got := w.api.Pod("d", "p0").Status; got.Phase != corev1.PodFailed || got.Reason != eventDeadline {
			t.Errorf("the pod is %s %q, want Failed %s", got.Phase, got.Reason, eventDeadline)
		}
	})
}

// TestActiveDeadlineWaitsForWhoActsForTheNode: a daemon that was frozen, or that knows of another acting daemon, leaves the pods alone.
func TestActiveDeadlineWaitsForWhoActsForTheNode(t *testing.T) {
	seconds := int64(60)
	for name, twin := range map[string]bool{"frozen": false, "another acts": true} {
		t.Run(name, func(t *testing.T) {
			inTwins(t, func(w *twins) {
				first := w.start("first")
				limited := bound("p0", "limited")
				limited.Spec.ActiveDeadlineSeconds = &seconds
				w.api.Create(limited)
				w.pass(10 * time.Second)
				if twin {
					w.start("second")
					w.pass(2 * time.Second)
				}
				w.taken("first")
				first.freeze()
				w.pass(5 * time.Minute)
				first.heal()
				w.pass(time.Minute)
				did := w.taken("first")
				at := slices.Index(did, "delete p0")
				switch {
				case twin && at >= 0:
					t.Errorf("it did %q although another daemon acts", did)
				case !twin && (at < 0 || !slices.Contains(did[:at], "list")):
					t.Errorf("it did %q, want a look at its pods before the stop", did)
				}
			})
		})
	}
}

// TestActiveDeadlineIsKeptWhileAnUpdateIsRejected: the rejected update is retried after ten minutes, but the deadline is kept.
func TestActiveDeadlineIsKeptWhileAnUpdateIsRejected(t *testing.T) {
	for name, fault := range map[string]error{"rejected": errdefs.InvalidInput("no such image"), "failed": memory.ErrUnwell} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			inWorld(t, b, func(w *world) {
				w.start()
				seconds := int64(90)
				limited := bound("p", "limited")
				limited.Spec.ActiveDeadlineSeconds = &seconds
				w.api.Create(limited)
				w.pass(time.Second)
				b.Inject(memory.Fault{Method: memory.Update, Err: fault})
				w.api.Change("d", "p", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "other" })
				w.pass(88 * time.Second)
				w.wantPhase("p", corev1.PodRunning)
				updates := b.Count("update d/p")
				w.pass(5 * time.Second)
				if got := w.api.Pod("d", "p").Status; got.Phase != corev1.PodFailed || got.Reason != eventDeadline {
					t.Errorf("after its deadline the pod is %s %q, want Failed %s", got.Phase, got.Reason, eventDeadline)
				}
				if n := b.Count("update d/p") - updates; n > 1 {
					t.Errorf("the update was tried %d times in the last seconds", n)
				}
			})
		})
	}
}

// TestStopAfterTheActiveDeadlineIsTriedWithPauses holds that an expired deadline does not shorten the delays of retries.
func TestStopAfterTheActiveDeadlineIsTriedWithPauses(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		seconds := int64(30)
		limited := bound("p", "limited")
		limited.Spec.ActiveDeadlineSeconds = &seconds
		w.api.Create(limited)
		w.pass(time.Second)
		b.Inject(memory.Fault{Method: memory.Delete, Err: memory.ErrUnwell})
		w.pass(2 * time.Minute)
		if n := b.Count("delete d/p"); n < 2 || n > 20 {
			t.Errorf("in a minute and a half the pod was asked to stop %d times, want a few", n)
		}
		b.Heal()
	})
}
