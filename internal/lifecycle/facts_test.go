// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"testing"
)

// TestStepsThatAsk only complete the facts: another decision follows in the same pass.
func TestStepsThatAsk(t *testing.T) {
	asking := []Step{AskByName, AskAll, ReadLive, Admit, CountMissing, CountOrphan, TakeEnd, Fail, BeginOrphan, KeepLeft, Recreate}
	for s := Rest; s <= Release; s++ {
		if got, want := s.Asks(), slices.Contains(asking, s); got != want {
			t.Errorf("step %d asks is %v, want %v", s, got, want)
		}
	}
}
