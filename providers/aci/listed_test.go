// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
)

// TestPodsOfTheClusterComeLate: until they are there, nothing is said of the pods from before a restart.
func TestPodsOfTheClusterComeLate(t *testing.T) {
	p := testAzure(t).provider(t, nil)
	var asked atomic.Int64
	var there atomic.Bool
	p.listed = func() bool { asked.Add(1); return there.Load() }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.RunInBackground(ctx) }()
	for asked.Load() < 3 {
		runtime.Gosched()
	}
	if p.cache.Synced() || p.AnswersForAllPods() {
		t.Error("what the service has was listed before that")
	}
	there.Store(true)
	if err := p.cache.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
