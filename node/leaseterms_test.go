// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestPodsThatComeWhileALeaseTermBeginsAreCreated: the live read lacks these pods, and the cache has them.
func TestPodsThatComeWhileALeaseTermBeginsAreCreated(t *testing.T) {
	inTwins(t, func(w *twins) {
		w.listTakes = 2 * time.Second
		d := w.start("first")
		for i := range 20 {
			w.api.Create(bound(twinPod(i), types.UID(fmt.Sprint("u", i))))
			w.pass(300 * time.Millisecond)
		}
		w.pass(time.Minute)
		w.wantAgreement()
		d.stop()
	})
}

// TestStatusWaitsWhileTheCacheIsBehind: another process has acted for the node, and the cache does not have its writes yet. Reports of the
// backend must not overwrite these writes.
func TestStatusWaitsWhileTheCacheIsBehind(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		f := lease.NewFence()
		w.fence = f
		w.launch()
		f.Renewed(time.Now(), true)
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		w.wantPhase("p", corev1.PodRunning)
		f.Lose(lease.Mark{ID: "another"})
		w.api.Silence()
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Status.Message = "of the other process" })
		f.Renewed(time.Now(), true)
		w.pass(2 * time.Second)
		before := len(w.api.Writes("d/p"))
		b.Change("d/p", func(p *corev1.Pod) { p.Status.Message = "new" })
		w.pass(5 * time.Second)
		if writes := w.api.Writes("d/p")[before:]; len(writes) > 0 {
			t.Errorf("while the cache is behind, it writes %+v", writes)
		}
		f.Renewed(time.Now(), false)
		w.api.Cut() // a new watch delivers the missed events
		w.pass(8 * time.Second)
		if got := w.api.Pod("d", "p").Status.Message; got != "new" {
			t.Errorf("message is %q when the cache has caught up, want what the backend reports", got)
		}
	})
}
