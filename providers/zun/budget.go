// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// mostLooks is how many containers are asked for at once.
	mostLooks = 8
	// lookTimeout bounds a request for one container beside a list: Zun is slow about those on a host that is down.
	lookTimeout = 15 * time.Second
)

// budget says which containers are asked for beside a list: a list does not tell of ends that Zun has not looked at.
type budget struct {
	perMinute int

	mu   sync.Mutex
	last time.Time            // guarded by mu; when the last round was
	have float64              // guarded by mu; how many requests may be made
	seen map[string]time.Time // guarded by mu; when a container was asked for last
}

// choose returns the indexes of those to ask for: all whose end is not read, which happens once in the life of a run, and of those that run the ones that
// were not asked for the longest, as many as there is room for.
func (b *budget) choose(all []instance, now time.Time) (some []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	most := max(1, float64(b.perMinute)/6) // of ten seconds
	b.have = min(most, b.have+now.Sub(b.last).Minutes()*float64(b.perMinute))
	if b.last.IsZero() {
		b.have = most
	}
	b.last = now
	seen := map[string]time.Time{}
	var rest []int
	for n, i := range all {
		seen[i.UUID] = b.seen[i.UUID]
		switch {
		case i.capsule:
		case i.unread():
			some = append(some, n)
		case i.Status == stateRunning && i.TaskState == "":
			rest = append(rest, n)
		}
	}
	slices.SortStableFunc(rest, func(x, y int) int {
		return cmp.Or(seen[all[x].UUID].Compare(seen[all[y].UUID]), cmp.Compare(x, y))
	})
	rest = rest[:min(len(rest), int(b.have))]
	b.have -= float64(len(rest))
	for _, n := range rest {
		seen[all[n].UUID] = now
	}
	b.seen = seen
	return append(some, rest...)
}

// refresh asks for some of a list, and returns the list with what came.
func (b *budget) refresh(ctx context.Context, all []instance, look func(context.Context, instance) instance) []instance {
	var asked sync.WaitGroup
	room := make(chan struct{}, mostLooks)
	for _, n := range b.choose(all, time.Now()) {
		asked.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			bounded, cancel := context.WithTimeout(ctx, lookTimeout)
			defer cancel()
			all[n] = look(bounded, all[n])
		})
	}
	asked.Wait()
	return all
}
