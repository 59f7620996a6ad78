// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
)

// TestRenewalsAreNoNewsForTheNode: the node reconciler is notified only when the holder changes.
func TestRenewalsAreNoNewsForTheNode(t *testing.T) {
	h := newLeaseHolder(lease.Mark{ID: "self"}, nil, nil)
	h.tellHeld(newLatest[bool]())
	for i, ours := range []bool{false, false, true, true, true, false, true} {
		h.tellFence(ours)
		told, news := h.holds.take()
		if changed := i == 0 || i == 2 || i > 4; news != changed || news && told != ours {
			t.Errorf("word %d, %v: told %v, news %v", i, ours, told, news)
		}
	}
}

// TestLeaseThatIsGoneWasAnothersUnlessItWasOursJustNow: another process waits, and takes an old lease. So the state of the pods is still
// valid only if the last renewal is recent.
func TestLeaseThatIsGoneWasAnothersUnlessItWasOursJustNow(t *testing.T) {
	for age, anew := range map[time.Duration]bool{0: false, lease.MaxAge - time.Second: false, lease.MaxAge: true, time.Hour: true} {
		synctest.Test(t, func(t *testing.T) {
			h := newLeaseHolder(lease.Mark{ID: "self"}, nil, nil)
			h.tellHeld(newLatest[bool]())
			create := func() {
				if !h.mayTake(t.Context(), nil) {
					t.Fatal("a lease that is not there may not be created")
				}
				mine := &coordinationv1.Lease{}
				h.markLease(mine)
				h.recordHeld(t.Context(), mine, time.Now())
			}
			create()
			term, first, _ := h.fence.Pending()
			if !first {
				t.Error("nobody may have acted before the first lease")
			}
			h.fence.Begin(term)
			time.Sleep(age)
			create()
			if _, got, begins := h.fence.Pending(); got != anew || begins != anew {
				t.Errorf("%v after the last renewal the lease is gone: another may have acted: %t, a term begins: %t; want %t", age, got, begins, anew)
			}
		})
	}
}
