// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestOneThatHasLeftHidesNoOrphan: by its name the backend tells of the pod that has left, and a pod that nobody knows of runs beside it.
// The list has both, and the one that runs is stopped as any orphan.
func TestOneThatHasLeftHidesNoOrphan(t *testing.T) {
	b := memory.New()
	b.KeepsEnded, b.EndedFirst = true, true
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Minute)
		w.wantPhase("p", corev1.PodRunning)
		w.api.Delete("d", "p", 30)
		w.pass(time.Minute)
		if n := w.api.Len(); n != 0 {
			t.Fatalf("%d pods are left in the API server", n)
		}
		b.Extra(bound("p", "b"))
		w.pass(20 * time.Minute)
		if ran := b.Instances("b"); len(ran) != 0 {
			t.Errorf("%v run at the backend, want none", ran)
		}
	})
}
