// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestEarlierPodsAreForgottenWithTheirObjects: a daemon that runs for years does not remember the pods from its start.
func TestEarlierPodsAreForgottenWithTheirObjects(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.api.Create(bound("p", "a"))
		w.api.Create(bound("q", "b"))
		w.start()
		w.pass(time.Minute)
		if was, _ := w.ctl.earlier.has("a"); !was {
			t.Fatal("it is not known that the pod was there before")
		}
		w.api.Delete("d", "p", 1)
		w.pass(time.Minute)
		was, _ := w.ctl.earlier.has("a")
		other, _ := w.ctl.earlier.has("b")
		if was || !other {
			t.Errorf("the pod that is gone is remembered: %t, and the one that is there: %t", was, other)
		}
	})
}
