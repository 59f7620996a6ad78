// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// written stores copies from responses of the API server until the watch cache has them or a newer version.
// Otherwise each of many pods with the same copy would write it again.
type written struct {
	mu  sync.Mutex
	all map[object]writtenCopy // guarded by mu
}

type writtenCopy struct {
	before string        // the resource version in the watch cache at that time; "": none
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

// latestCopy returns the written copy if the watch cache has not changed since, or else the cached one. nil means
// none. A deleted copy stays deleted, however late the watch is. Callers must not change the result.
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

// recordWritten records the response to a write. After an error, only the cached state counts.
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

// recordRemoved records that a copy with this cached version was deleted, or may have been. The next pod that
// needs the copy creates it again.
func (w *written) recordRemoved(o object, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.all, o); version == "" {
		return // the copy is not in the watch cache
	}
	if w.all == nil {
		w.all = map[object]writtenCopy{}
	}
	w.all[o] = writtenCopy{before: version}
}

// pruneShown forgets the copies that have changed in the watch cache since.
func (w *written) pruneShown(version func(object) string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for o, was := range w.all {
		if version(o) != was.before {
			delete(w.all, o)
		}
	}
}
