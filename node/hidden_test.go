// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestOneThatHasLeftHidesNoOrphan: GetPod returns the pod that has left, and an unknown pod runs beside it. The list has both, and the
// running pod is stopped like any orphan.
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

// TestKeptPodsCostNoListsAtRest: a backend lists ended pods for a long time, and pods of the same names were created and deleted twice, as
// for a StatefulSet that was restarted and scaled down.
func TestKeptPodsCostNoListsAtRest(t *testing.T) {
	const names, generations = 20, 3
	b := memory.New()
	b.KeepsEnded = true
	var lists atomic.Int64
	b.Script(func(_ context.Context, method, _ string) error {
		if method == memory.List {
			lists.Add(1)
		}
		return nil
	})
	inWorld(t, b, func(w *world) {
		w.start()
		for g := range generations {
			for i := range names {
				w.api.Create(bound(fmt.Sprint("p", i), types.UID(fmt.Sprint("u", g, "-", i))))
			}
			w.pass(time.Minute)
			for i := range names {
				w.api.Delete("d", fmt.Sprint("p", i), 1)
			}
			w.pass(time.Minute)
		}
		w.pass(time.Minute)
		before := lists.Load()
		w.pass(time.Hour)
		if n := lists.Load() - before; n > 241 {
			t.Errorf("%d lists in an hour at rest, want one in %v", n, relistPeriod)
		}
	})
}
