// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// heapRoom is the number of bytes allocated between two collections while the heap is small. By default this equals the live heap, so a
	// node with few pods would collect all the time. A larger heapRoom would be most of the memory of such a node.
	heapRoom = 8 << 20
	// leastGrowth and mostGrowth bound the resulting growth, in percent of the live heap.
	leastGrowth, mostGrowth = 60, 800
)

// tuneHeap makes the heap of the process grow by about the same amount between two collections: a small heap is collected less often, and a
// large heap more often, than by default. GOGC, if the user sets it, disables this; GOMEMLIMIT still applies.
func tuneHeap() {
	if os.Getenv("GOGC") != "" {
		return
	}
	set := growth(0)
	debug.SetGCPercent(set)
	afterEachCollection(func(live uint64) {
		if want := growth(live); want < set*9/10 || want > set*11/10 { // SetGCPercent stops the world
			set = want
			debug.SetGCPercent(set)
		}
	})
}

// growth returns the allowed growth of the heap in percent, for the given live bytes.
func growth(live uint64) int {
	if live == 0 {
		return mostGrowth
	}
	return int(min(max(heapRoom*100/live, leastGrowth), mostGrowth))
}

// sentinel is garbage at once, so its cleanup runs after each collection. It holds a pointer, so that the runtime does not allocate it in a
// block with other objects.
type sentinel struct{ _ *sentinel }

// afterEachCollection calls do with the live bytes after each collection.
func afterEachCollection(do func(live uint64)) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var again func(struct{})
	again = func(struct{}) {
		metrics.Read(sample)
		if sample[0].Value.Kind() == metrics.KindUint64 {
			do(sample[0].Value.Uint64())
		}
		runtime.AddCleanup(&sentinel{}, again, struct{}{})
	}
	again(struct{}{})
}
