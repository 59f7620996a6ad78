// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"go.uber.org/goleak"
)

// TestNothingOutlivesRun runs a whole node ten times, with pods. It is not parallel: other tests'
// goroutines would be counted.
func TestNothingOutlivesRun(t *testing.T) {
	w := newWorld(t)
	w.life() // creates connections and caches that the process keeps
	before := goleak.IgnoreCurrent()
	for range 10 {
		w.life()
	}
	goleak.VerifyNone(t, before)
}

// life runs a node from start to end. Two pods come and go, and a third pod stays until the end.
func (w *world) life() {
	w.Helper()
	daemon := w.start()
	names := w.createMany("pod", 3)
	w.awaitRunning(3)
	w.removeMany(names[1:])
	w.awaitRunning(1)
	daemon.stop()
	w.remove(names[0], atOnce())
	w.awaitNoPods()
	w.backend.Lose(w.key(names[0]))
}
