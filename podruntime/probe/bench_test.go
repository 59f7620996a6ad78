// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"sync"
	"testing"
	"time"
)

// BenchmarkTick measures one run of an exec probe, from the queue to the result.
func BenchmarkTick(b *testing.B) {
	p := New(Config{Exec: func(context.Context, string, []string, time.Duration) ([]byte, []byte, error) { return nil, nil, nil }})
	p.Ensure(running("a", liveness(execProbe("live", delay(1))), readiness(execProbe("ready"))))
	var running sync.WaitGroup
	b.ReportAllocs()
	for b.Loop() {
		p.mu.Lock()
		w := p.containers["a"].probes[1]
		p.queue.remove(w)
		w.due = time.Now()
		p.queue.add(w)
		p.mu.Unlock()
		p.launchDue(b.Context(), &running)
		running.Wait()
	}
}

// BenchmarkEnsure measures the cost of Ensure when nothing has changed.
func BenchmarkEnsure(b *testing.B) {
	p := New(Config{})
	t := running("a", liveness(execProbe("live")), readiness(execProbe("ready")))
	p.Ensure(t)
	b.ReportAllocs()
	for b.Loop() {
		p.Ensure(t)
	}
}
