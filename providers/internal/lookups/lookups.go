// SPDX-License-Identifier: Apache-2.0

// Package lookups gets the states of instances one by one, and keeps the last answers. It is for services whose lists lack the states.
//
// The guarantee: an unsettled instance is looked up after a pause. The interval grows the longer the instance is unsettled, up to a minute. The other
// instances share the rest of a budget of requests. Optional instances come first, then instances that will end by themselves, and then those with
// the longest wait, relative to their running time, because most ends come early. An unknown instance is looked up at once, so every listed instance
// has an answer.
//
// Note: an error about one instance fails the whole round, because callers need a complete list.
package lookups

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

const (
	// together is the maximum number of concurrent requests.
	together = 8
	// slowest is the longest interval of requests about an unsettled instance. The interval is the time that the instance has been unsettled, divided
	// by patience.
	slowest, patience = time.Minute, 8
	// haste is how long the interval for a changing instance does not grow, because the service may report an end for only a moment.
	haste = 5 * time.Minute
	// ripe is the age at which the interval for an instance stops growing.
	ripe = 10 * time.Minute
)

// Listed is the information of a list about an instance.
type Listed struct {
	// Changes reports whether the instance is about to change.
	Changes bool
	// Optional reports whether the exact state of the instance is not needed. It is looked up only within the budget, before settled instances.
	Optional bool
	// Ends reports whether the instance will end by itself.
	Ends bool
	// Since is when the instance settled. Zero means that the list does not show it, so a request asks for it.
	Since time.Time
}

// Lookups has the last answers about instances, by their IDs. Its methods may be called from any goroutine.
type Lookups[T any] struct {
	ask          func(ctx context.Context, id string) (answer T, settled bool, err error)
	budget       *rate.Limiter
	start, pause time.Duration

	mu    sync.Mutex
	known map[string]known[T] // guarded by mu
}

// known is an answer. since is when an instance began to change, or to be unsettled; zero means neither. settled
// is when the instance was first seen to be settled. pause is the minimum time until the next request.
type known[T any] struct {
	answer             T
	at, since, settled time.Time
	pause              time.Duration
	changes            bool
}

// New returns lookups without answers. ask asks about one instance, and reports whether the instance is settled: no change is expected soon.
// perMinute is the budget of requests; it does not limit requests about unsettled instances. start is the minimum time between Made and the first
// request about an instance. pause is the minimum time between two requests about an unsettled instance, and between the start of a change and the
// first request.
func New[T any](perMinute int, start, pause time.Duration, ask func(ctx context.Context, id string) (answer T, settled bool, err error)) *Lookups[T] {
	burst := max(1, perMinute/12) // for a round every 5 s
	return &Lookups[T]{ask: ask, start: start, pause: pause, budget: rate.NewLimiter(rate.Limit(float64(perMinute)/60), burst), known: map[string]known[T]{}}
}

// Made records a new instance. There is nothing to learn about it while it starts.
func (l *Lookups[T]) Made(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.known[id] = known[T]{at: now, since: now, pause: l.start}
}

// Refresh looks up the instances that are due. It forgets an instance that is not in instances, a while after the last request about it.
func (l *Lookups[T]) Refresh(ctx context.Context, instances map[string]Listed) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for _, id := range l.dueInstances(instances, time.Now()) {
		group.Go(func() error {
			_, err := l.Ask(ctx, id)
			return err
		})
	}
	return group.Wait()
}

// dueInstances returns the instances to look up now.
func (l *Lookups[T]) dueInstances(instances map[string]Listed, now time.Time) (due []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, k := range l.known {
		if _, there := instances[id]; !there && now.Sub(k.at) >= slowest { // lists may not have a new instance yet
			delete(l.known, id)
		}
	}
	var others []string
	turns := map[string]float64{} // of the other instances: for settled ones, the time since their last lookup, relative to their age
	for id, is := range instances {
		k, asked := l.known[id]
		if k.changes = is.Changes; is.Changes && k.since.IsZero() {
			k.since, k.at, k.pause = now, now, l.pause
		}
		if !is.Changes && !is.Since.IsZero() {
			k.since, k.settled = time.Time{}, is.Since
		}
		if asked {
			l.known[id] = k
		}
		lasts := now.Sub(k.since)
		if is.Changes {
			lasts -= haste
		}
		switch {
		case k.since.IsZero() && !k.settled.IsZero():
			others = append(others, id)
			runs := max(now.Sub(k.settled), 1)
			turns[id] = float64(min(now.Sub(k.at), runs, ripe)) / float64(min(runs, ripe))
			if is.Ends {
				turns[id]++ // settled instances without Ends have at most 1
			}
		case asked && now.Sub(k.at) < min(max(lasts/patience, k.pause), slowest):
		case is.Optional:
			others = append(others, id)
			turns[id] = 3 // settled instances have 2 at most
		default:
			due = append(due, id)
			l.budget.AllowN(now, 1) // the budget does not limit it
		}
	}
	slices.SortFunc(others, func(a, b string) int { return cmp.Or(cmp.Compare(turns[b], turns[a]), cmp.Compare(a, b)) })
	for _, id := range others {
		if !l.budget.AllowN(now, 1) {
			break
		}
		due = append(due, id)
	}
	return due
}

// Ask looks up an instance at once, and keeps the answer. If the service does not have the instance, the answer is empty, and there is no error:
// lists decide whether the instance is gone.
func (l *Lookups[T]) Ask(ctx context.Context, id string) (answer T, err error) {
	asked := time.Now()
	answer, settled, err := l.ask(ctx, id)
	if err != nil && !errdefs.IsNotFound(err) {
		return answer, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.known[id]
	if k.at.After(asked) { // another lookup was faster
		return k.answer, nil
	}
	k.answer, k.at, k.pause = answer, asked, l.pause
	switch {
	case !settled:
		k.settled = time.Time{}
	case k.settled.IsZero():
		k.settled = asked
	}
	switch {
	case settled && !k.changes:
		k.since = time.Time{}
	case k.since.IsZero():
		k.since = asked
	}
	l.known[id] = k
	return answer, nil
}

// Last returns the last answer about an instance, or the zero value.
func (l *Lookups[T]) Last(id string) T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[id].answer
}
