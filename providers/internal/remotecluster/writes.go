// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// written holds copies as the API server answered, until the watch shows them or something newer. Otherwise each
// of many pods with the same copy would write it again.
type written struct {
	mu  sync.Mutex
	all map[object]writtenCopy // guarded by mu
}

type writtenCopy struct {
	before string        // the resource version in the watch at that time; "": none
	after  metav1.Object // nil: the copy was removed
	at     time.Time
}

// copied is a ConfigMap or a Secret.
type copied interface {
	metav1.Object
	comparable
}

func versionOf[T copied](o T) string {
	var none T
	if o == none {
		return ""
	}
	return o.GetResourceVersion()
}

// latestCopy returns a copy as written, if the watch has shown nothing since, or else as shown by the watch; nil
// means none. A removed copy stays removed, however late the watch is. The result is shared.
func latestCopy[T copied](w *written, o object, cached T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	was, ok := w.all[o]
	if ok && was.before == versionOf(cached) {
		if was.after == nil {
			return *new(T)
		}
		if time.Since(was.at) < shownWithin {
			return was.after.(T)
		}
	}
	delete(w.all, o)
	return cached
}

// recordWritten records the answer of the API server to a write. After an error, only the state shown by the watch is
// known.
func recordWritten[T copied](w *written, o object, cached, after T, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		delete(w.all, o)
		return err
	}
	if w.all == nil {
		w.all = map[object]writtenCopy{}
	}
	w.all[o] = writtenCopy{versionOf(cached), after, time.Now()}
	return nil
}

// recordRemoved records that a copy shown by the watch in this version was removed, or may have been. The next pod
// that needs the copy writes it again.
func (w *written) recordRemoved(o object, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.all, o); version == "" {
		return // the watch does not show the copy
	}
	if w.all == nil {
		w.all = map[object]writtenCopy{}
	}
	w.all[o] = writtenCopy{before: version}
}

// pruneShown forgets the copies that the watch has shown since.
func (w *written) pruneShown(version func(object) string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for o, was := range w.all {
		if version(o) != was.before {
			delete(w.all, o)
		}
	}
}
