// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// podWatch delivers events to one watcher. Undelivered events wait in a queue without a bound, so that the API
// never waits for a watcher.
type podWatch struct {
	api *API

	// guarded by api.mu
	until int64 // events after this revision are held back by Lag
	since int64 // the watcher has all events up to this revision
	mute  bool  // Silence has muted the events of this watch

	out     chan watch.Event
	wake    chan struct{} // holds a token if the pump must check again
	stopped chan struct{}
	stop    sync.Once
	expire  *time.Timer // ends the watch after the timeout named by the client

	mu    sync.Mutex
	queue []watch.Event // guarded by mu
	ended bool          // guarded by mu; close out after the queue
}

func newPodWatch(a *API, since int64) *podWatch {
	w := &podWatch{
		api: a, since: since, until: math.MaxInt64,
		out: make(chan watch.Event), wake: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	go w.pumpEvents()
	return w
}

// catchUp sends the unseen visible events of the watcher. It is called with api.mu held.
func (w *podWatch) catchUp() {
	for _, e := range w.api.events {
		if e.Revision <= w.since || e.Revision > w.until {
			continue
		}
		w.since = e.Revision
		if !e.unseen {
			w.sendEvent(watch.Event{Type: e.Kind, Object: e.Pod.DeepCopy()})
		}
	}
}

// offerVersion sends one new event. It is called with api.mu held.
func (w *podWatch) offerVersion(e Version) {
	if e.Revision <= w.since || e.Revision > w.until {
		return
	}
	w.since = e.Revision
	if !e.unseen {
		w.sendEvent(watch.Event{Type: e.Kind, Object: e.Pod.DeepCopy()})
	}
}

func (w *podWatch) sendEvent(e watch.Event) {
	if w.mute {
		return
	}
	w.mu.Lock()
	w.queue = append(w.queue, e)
	w.mu.Unlock()
	w.wakePump()
}

// endWatch closes the watch after the sent events, without a further event.
func (w *podWatch) endWatch() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.wakePump()
}

func (w *podWatch) wakePump() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *podWatch) pumpEvents() {
	defer close(w.out)
	for {
		w.mu.Lock()
		batch, ended := w.queue, w.ended
		w.queue = nil
		w.mu.Unlock()
		for _, e := range batch {
			select {
			case w.out <- e:
			case <-w.stopped:
				return
			}
		}
		if ended {
			return
		}
		select {
		case <-w.wake:
		case <-w.stopped:
			return
		}
	}
}

// ResultChan returns the channel of events.
func (w *podWatch) ResultChan() <-chan watch.Event { return w.out }

// Stop ends the watch from the client's side.
func (w *podWatch) Stop() {
	w.api.mu.Lock()
	delete(w.api.watches, w)
	w.api.mu.Unlock()
	w.stop.Do(func() {
		if w.expire != nil {
			w.expire.Stop()
		}
		close(w.stopped)
	})
}

// Cut ends all watches without an event, like a broken connection. A watcher that resumes at its last version misses nothing.
func (a *API) Cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cutWatches()
}

func (a *API) cutWatches() {
	for w := range a.watches {
		w.endWatch()
		delete(a.watches, w)
	}
}

// Silence stops the events of all open watches, like a silently broken connection. The watches end at the client's timeout, or by Cut.
func (a *API) Silence() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.watches {
		w.mute = true
	}
}
