// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// TestServiceIsAskedOnceThePodsOfTheClusterAreKnown: until then nothing is said of the pods from before a restart, and a call about one says so.
func TestServiceIsAskedOnceThePodsOfTheClusterAreKnown(t *testing.T) {
	bubble(t, AgainReturnsFirst, func(t *testing.T, h *home) {
		pod := h.pod("web")
		h.create(first(h.start(nil)), pod)
		time.Sleep(time.Minute)
		var known atomic.Bool
		p, _ := h.start(nil, func(c *Config) { c.Listed = known.Load })
		time.Sleep(time.Minute)
		if p.Cache().Synced() || p.AnswersForAllPods() {
			t.Error("the service was asked before the pods of the cluster were known")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.GetPod(ctx, "ns", "web"); err == nil {
			t.Error("a pod is known before the service was asked")
		}
		known.Store(true)
		if got, err := p.GetPod(t.Context(), "ns", "web"); err != nil || got.UID != pod.UID {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func first[A, B any](a A, _ B) A { return a }
