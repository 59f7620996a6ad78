// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestCallThatReturnsInTheLastMomentIsNotSaidToHang: the notice is due when the call returns, and runs after the result was recorded.
func TestCallThatReturnsInTheLastMomentIsNotSaidToHang(t *testing.T) {
	inWorld(t, memory.New(), func(w *world) {
		w.start()
		w.pass(time.Second)
		states := &w.ctl.states
		states.changeOrBegin("d/p", func(st *podState) { st.sent.UID = "a" })
		err := w.ctl.worker.callAboutPod(w.Context(), "d/p", bound("p", "a"), "CreatePod", func(context.Context) error {
			<-time.After(hungCall - time.Nanosecond)
			states.mu.Lock() // the notice waits for this lock
			<-time.After(time.Nanosecond)
			return nil
		})
		states.mu.Unlock()
		synctest.Wait()
		if err != nil {
			t.Error(err)
		}
		if said := states.get("d/p").syncErr; said != nil {
			t.Errorf("the call has returned, and the pod says: %s", said.Message)
		}
		if events := w.events(); len(events) > 0 {
			t.Errorf("the call has returned, and these are the events: %q", events)
		}
	})
}
