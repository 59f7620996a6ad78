// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
)

// TestPodsOfTheClusterComeLate: until they are there, nothing is said of the pods from before a restart.
func TestPodsOfTheClusterComeLate(t *testing.T) {
	c := cloudOf(t)
	conf, err := c.config("home")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	var there atomic.Bool
	in := cli.ProviderInput{NodeName: "node"}
	in.Listed = func() bool { asked.Add(1); return there.Load() }
	p, err := newProvider(t.Context(), in, conf, quick)
	if err != nil {
		t.Fatal(err)
	}
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
