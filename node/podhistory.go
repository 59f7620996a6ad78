// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// history knows how far the API server has come. One that goes back was restored
// from a backup: what it lacks then was not deleted by anybody. One that goes on
// has told, or would have told, who deleted what, also when we could not hear it.
type history struct {
	mu     sync.Mutex
	newest string    // guarded by mu; the highest version since it last went back
	back   time.Time // guarded by mu; when it was last seen to have gone back
}

// at notes a version that the API server was at, and reports whether it had been
// farther. Versions that cannot be compared say nothing.
func (h *history) at(version string, now time.Time) (wentBack bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	order, known := h.compare(version)
	if !known {
		return false
	}
	h.newest = version
	if order < 0 {
		h.back = now
	}
	return order < 0
}

// reached notes that the API server had come as far as version, or farther. It takes
// the versions of single pods, which come in any order.
func (h *history) reached(version string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if order, known := h.compare(version); known && order > 0 {
		h.newest = version
	}
}

// compare says whether version is newer (1) or older (-1) than the newest; known is
// false for what is no version, such as that of a list that was not made yet.
func (h *history) compare(version string) (order int, known bool) {
	newest := h.newest
	if newest == "" {
		newest = "1"
	}
	order, err := resourceversion.CompareResourceVersion(version, newest)
	return order, err == nil
}

// doubtful reports whether the API server went back not long ago.
func (h *history) doubtful(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.back.IsZero() && now.Sub(h.back) < quarantineMass
}

// look takes note of how far the pods' informer has come. It is not for handlers of
// its events: the informer holds its lock while it removes one.
func (c *PodController) look(ctx context.Context) {
	c.sawVersion(ctx, c.informer.LastSyncResourceVersion())
}

// sawVersion takes note of a version that the API server was at. When it has gone
// back, what was written since is lost, and all is written again.
func (c *PodController) sawVersion(ctx context.Context, version string) {
	if !c.history.at(version, time.Now()) {
		return
	}
	log.G(ctx).Errorf("the API server has gone back to version %s, as one that was restored from a backup does: "+
		"pods that it no longer knows are held at the backend for %v", version, quarantineMass)
	for _, key := range c.states.forgetWritten() {
		c.syncLane.Add(key)
		c.statusLane.Add(key)
	}
}

// forgetWritten forgets what the API server has answered to writes, and returns all keys.
func (s *podStates) forgetWritten() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, st := range s.m {
		st.written, st.removedAt = nil, time.Time{}
		keys = append(keys, key)
	}
	return keys
}
