// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
)

// TestRenewalsAreNoNewsForTheNode: who writes the Node object hears of a change of hands only.
func TestRenewalsAreNoNewsForTheNode(t *testing.T) {
	h := newLeaseHolder(lease.Mark{ID: "self"}, nil, nil)
	h.tellHeld(newLatest[bool]())
	for i, ours := range []bool{false, false, true, true, true, false, true} {
		h.tell(ours)
		told, news := h.holds.take()
		if changed := i == 0 || i == 2 || i > 4; news != changed || news && told != ours {
			t.Errorf("word %d, %v: told %v, news %v", i, ours, told, news)
		}
	}
}
