// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"
)

// maxWrites is the number of writes to the API server that one pod may cost: one when it runs, one when it has
// ended, one to remove it.
const maxWrites = 3

func TestManyPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.manyPods(200)
}

func TestManyPodsWithoutNotifier(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.polled = true
	w.manyPods(100)
}

// manyPods runs n pods through their whole life.
func (w *world) manyPods(n int) {
	w.Helper()
	w.start()
	names := w.createMany("many", n)
	w.awaitRunning(n)
	if got := w.backend.Len(); got != n {
		w.Errorf("the backend has %d pods, want %d", got, n)
	}
	w.removeMany(names)
	w.awaitNoPods()
	w.awaitEmptyBackend()
	w.createdOnce(names)
	if got := len(w.requests.podWrites()); got != n {
		w.Errorf("the node wrote to %d pods, want %d", got, n)
	}
	w.cheap()
}

// cheap checks the number of writes for each pod.
func (w *world) cheap() {
	w.Helper()
	for key, writes := range w.requests.podWrites() {
		if len(writes) > maxWrites {
			w.Errorf("pod %s cost %d writes, want at most %d:\n%s", key, len(writes), maxWrites, lines(writes))
		}
	}
}
