// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// entry is the known state of one object, from a watch or from a single request.
type entry struct {
	store *Store
	key   key
	// answered is closed at the first answer or error, and when the entry is dropped.
	answered chan struct{}

	// guarded by Store.mu
	told    bool // answered is closed
	synced  bool // the API server has answered
	object  object
	err     error // of the last attempt, while not synced
	refused bool  // a caller got an error, so the next answer may be news to it
	dropped bool
	stop    context.CancelFunc // ends the watch; nil before the watch has started
}

func newEntry(s *Store, k key) *entry {
	return &entry{store: s, key: k, answered: make(chan struct{})}
}

// read sends one request for all waiting callers.
func (e *entry) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	k := e.key
	o, err := k.kind.get(ctx, e.store.client, k.namespace, k.name)
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	switch {
	case err == nil:
		e.object, e.synced = o, true
	case apierrors.IsNotFound(err):
		e.synced = true
	default:
		e.err = err
	}
	delete(e.store.reads, k)
	e.tellLocked()
}

// setError sets err as the answer. If the API server has already answered, setError keeps that answer and returns false.
func (e *entry) setError(err error) bool {
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	if e.synced || e.dropped {
		return false
	}
	e.err = err
	e.tellLocked()
	return true
}

// set records the answer of the API server; a nil object does not exist.
func (e *entry) set(o object) {
	s := e.store
	s.mu.Lock()
	if e.dropped {
		s.mu.Unlock()
		return
	}
	// The first answer is only news to callers that got an error before. Waiting callers are not notified twice.
	news := e.refused && !e.synced || e.synced && !isSameVersion(e.object, o)
	e.object, e.synced, e.err = o, true, nil
	e.tellLocked()
	if o != nil && e.key.kind.immutable(o) {
		e.stop()
	}
	var pods map[types.NamespacedName]struct{}
	if news {
		pods = make(map[types.NamespacedName]struct{}, len(s.referrers[e.key]))
		for id := range s.referrers[e.key] {
			pods[id.NamespacedName] = struct{}{}
		}
	}
	callbacks := s.onChange
	s.mu.Unlock()
	for pod := range pods {
		for _, f := range callbacks {
			(*f)(pod)
		}
	}
}

// dropLocked ends the watch. Waiting callers retry.
func (e *entry) dropLocked() {
	e.dropped = true
	if e.stop != nil {
		e.stop()
	}
	e.tellLocked()
}

func (e *entry) tellLocked() {
	if !e.told {
		e.told = true
		close(e.answered)
	}
}

// isSameVersion reports whether two objects have the same resource version. Objects without versions differ.
func isSameVersion(a, b object) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion() && a.GetUID() == b.GetUID()
}
