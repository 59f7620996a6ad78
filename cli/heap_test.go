// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"runtime"
	"testing"
	"time"
)

func TestSmallHeapsMayGrowByTheSameRoom(t *testing.T) {
	for live, want := range map[uint64]int{
		0:              mostGrowth,
		1 << 20:        mostGrowth,
		heapRoom / 2:   200,
		heapRoom:       100,
		heapRoom * 100: leastGrowth,
	} {
		if got := growth(live); got != want {
			t.Errorf("with %d bytes: %d %%, want %d", live, got, want)
		}
	}
}

func TestEachCollectionIsNoticed(t *testing.T) {
	seen := make(chan uint64, 100)
	ended := make(chan struct{})
	afterEachCollection(func(live uint64) {
		select {
		case <-ended: // the loop runs for as long as the process lives
		case seen <- live:
		default:
		}
	})
	defer close(ended)
	<-seen // the first call comes immediately
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for range 3 {
		for noticed := false; !noticed; {
			runtime.GC() // repeated, because a collection before the wait goes unnoticed
			select {
			case live := <-seen:
				if noticed = true; live == 0 {
					t.Error("nothing lives")
				}
			case <-again.C:
			case <-t.Context().Done():
				t.Fatal("a collection was not noticed")
			}
		}
	}
}
