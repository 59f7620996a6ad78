// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestLeaseIsKeptWhileACallGoesOn: a process stops while a CreatePod ignores its context. The next process must not overlap with the call,
// so it waits until the lease has expired.
func TestLeaseIsKeptWhileACallGoesOn(t *testing.T) {
	inTwins(t, func(w *twins) {
		w.backend.Inject(memory.Fault{Method: memory.Create, Delay: 8 * time.Second, Deaf: true, Times: 1})
		first := w.start("first")
		second := w.start("second")
		first.awaitActing(5 * time.Second)
		w.api.Create(bound("p0", "u"))
		w.pass(2 * time.Second)
		ended := make(chan struct{})
		go func() { defer close(ended); first.stop() }()
		for range 50 {
			w.pass(100 * time.Millisecond)
			if second.acts() {
				t.Error("the second process acts while a call of the first goes on")
				break
			}
		}
		second.awaitActing(15 * time.Second)
		<-ended
		w.pass(time.Minute)
		w.wantAgreement()
	})
}
