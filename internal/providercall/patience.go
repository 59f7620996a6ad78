// SPDX-License-Identifier: Apache-2.0

package providercall

import (
	"sync"
	"time"
)

const (
	// slowFactor is the ratio of a slow call to the usual time of a call.
	slowFactor = 4
	// leastPatience and mostPatience bound the time after which a call counts as slow.
	leastPatience = 100 * time.Millisecond
	mostPatience  = 10 * time.Second
	// firstPatience is this time before the first successful call of a method.
	firstPatience = time.Second
	// forgetting is the number of calls after which the average has adapted to a change.
	forgetting = 8
)

// Patience decides when a call is slow: when it takes several times longer than successful calls of the same method. So it quickly distinguishes a
// hanging call from a slow backend. The zero value is ready to use, and safe for concurrent use.
type Patience struct {
	mu    sync.Mutex
	usual map[string]time.Duration // guarded by mu; keyed by method
}

// With returns the time after which a call of the method counts as slow.
func (p *Patience) With(method string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	usual, known := p.usual[method]
	if !known {
		return firstPatience
	}
	return min(max(slowFactor*usual, leastPatience), mostPatience)
}

// recordDuration records the duration of a successful call.
func (p *Patience) recordDuration(method string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.usual == nil {
		p.usual = map[string]time.Duration{}
	}
	usual, known := p.usual[method]
	if !known {
		usual = d
	}
	p.usual[method] = usual + (d-usual)/forgetting
}
