// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// podWatch hands events to one watcher. Its channel has room for more events
// than any test makes, so that the API never waits for a watcher.
type podWatch struct {
	api *API

	mu      sync.Mutex
	stopped bool // guarded by mu
	events  chan watch.Event
}

func newPodWatch(a *API) *podWatch { return &podWatch{api: a, events: make(chan watch.Event, 1<<16)} }

// send is called with api.mu held.
func (w *podWatch) send(e watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.events <- e
	}
}

// ResultChan returns the channel of events.
func (w *podWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop ends the watch.
func (w *podWatch) Stop() {
	w.api.mu.Lock()
	delete(w.api.watches, w)
	w.api.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.stopped = true
		close(w.events)
	}
}
