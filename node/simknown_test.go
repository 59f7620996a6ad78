// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"
)

// TestKnownSchedules runs schedules that broke something once, shrunk, by what was wrong.
func TestKnownSchedules(t *testing.T) {
	for name, plan := range map[string]simSchedule{
		// The list of before the orphan's stop had it as a duplicate.
		"an orphan is stopped a second time, as a duplicate": {Lies: allLie, Steps: []simStep{
			{"create", 1, 0, 0},
			{"create", 2, 0, 300 * time.Millisecond},
			{"stop", 0, 0, 0},
			{"create", 0, 0, 0},
			{"delete by default", 2, 0, 0},
			{"restart without a cache", 0, 0, 0},
			{"create", 2, 0, 0},
			{"delete", 1, 4, 1 * time.Second},
			{"provider hangs", 1, 3, 45 * time.Second},
		}},
		// It was known to have finished, so its report was no sign that it runs.
		"a pod that has finished is told to stop at every answer": {ShowsAfter: 5 * time.Second, Steps: []simStep{
			{"create", 0, 0, 0},
			{"provider's answers are lost", 0, 1, 300 * time.Millisecond},
			{"delete", 0, 1, 0},
		}},
		// A former life may have created it, and the first NotFound was a lie.
		"a pod of before a restart is removed at the second NotFound": {Lies: allLie, ShowsAfter: 5 * time.Second, Steps: []simStep{
			{"create", 0, 0, 300 * time.Millisecond},
			{"restart without a cache", 2, 0, 0},
			{"delete", 0, 1, 300 * time.Millisecond},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // what happens at the same moment happens in any order
				for _, problem := range simulate(t, plan) {
					t.Fatal(problem)
				}
			}
		})
	}
}
