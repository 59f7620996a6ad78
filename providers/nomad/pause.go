// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"math/rand/v2"
	"time"
)

// pause waits between two tries, longer each time.
type pause struct{ next time.Duration }

const (
	shortestPause = 200 * time.Millisecond
	longestPause  = 5 * time.Second
)

func newPause() *pause { return &pause{next: shortestPause} }

func (p *pause) reset() { p.next = shortestPause }

// wait waits, with up to a half more, so that the nodes of a cluster do not come at once.
func (p *pause) wait(ctx context.Context) {
	sleep(ctx, p.next+rand.N(p.next/2))
	p.next = min(2*p.next, longestPause)
}

// short waits the shortest time.
func (p *pause) short(ctx context.Context) { sleep(ctx, shortestPause) }

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
