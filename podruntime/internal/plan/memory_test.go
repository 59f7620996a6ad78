// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"
)

func TestMemoryOfASandboxGoesWithIt(t *testing.T) {
	var m Memory
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	do := func(kind Kind, id string, o Outcome) {
		m.Begin(Action{Kind: kind, ID: id}, now)
		m.End(Action{Kind: kind, ID: id}, o, now)
	}
	for _, id := range []string{"a", "b", "c"} {
		do(RunSandbox, "", Outcome{ID: id})
		do(StopSandbox, id, Outcome{})
		do(RemoveSandbox, id, Outcome{Reason: "Busy"})
		if len(m.sandboxes) != 1 {
			t.Errorf("%d sandboxes are remembered, want %s alone, which could not be removed", len(m.sandboxes), id)
		}
		do(RemoveSandbox, id, Outcome{})
	}
	if len(m.sandboxes) != 0 || m.sandboxID != "" {
		t.Errorf("after all were removed there is %v, %q", m.sandboxes, m.sandboxID)
	}
}
