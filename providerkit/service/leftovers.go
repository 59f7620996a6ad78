// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// removeAgain is the first delay after a failed removal, and removeSlowest the longest.
const removeAgain, removeSlowest = 2 * time.Second, 5 * time.Minute

// leftovers has the names of things to remove.
type leftovers struct {
	remove func(context.Context, string) error
	wake   chan struct{} // holds a value if there is another leftover

	removal chan struct{} // holds a value during a removal

	mu    sync.Mutex
	names map[string]leftover // guarded by mu
	quiet bool                // guarded by mu; a failure was logged, and there was no success since
	now   string              // guarded by mu; the name of the thing being removed
	again bool                // guarded by mu; the same thing was left behind again during its removal
}

// leftover is the state of the removal of a thing.
type leftover struct {
	failed int       // consecutive failures
	due    time.Time // when the next attempt is due
}

func newLeftovers(remove func(context.Context, string) error) *leftovers {
	return &leftovers{remove: remove, wake: make(chan struct{}, 1), removal: make(chan struct{}, 1), names: map[string]leftover{}}
}

// add schedules the removal of a thing.
func (l *leftovers) add(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.names[name]; known {
		l.again = l.again || name == l.now
		return
	}
	l.names[name] = leftover{}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run removes leftovers until ctx ends. It runs concurrently with the lists, because a slow removal must not delay them.
func (l *leftovers) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-timer.C:
		}
		for _, name := range l.due() {
			first, err := l.try(ctx, name)
			if ctx.Err() != nil {
				return
			}
			if first {
				log.G(ctx).WithError(err).WithField("name", name).Warn("the leftovers of a pod are not removed yet")
			}
		}
		timer.Stop()
		if wait, more := l.next(); more {
			timer.Reset(wait)
		}
	}
}

// due returns the names of the things to remove now.
func (l *leftovers) due() (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, one := range l.names {
		if !time.Now().Before(one.due) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// try removes a thing unless its removal was canceled, and reports whether this is the first failure after a success.
func (l *leftovers) try(ctx context.Context, name string) (first bool, err error) {
	l.removal <- struct{}{}
	defer func() { <-l.removal }()
	if !l.begin(name) {
		return false, nil
	}
	err = l.remove(ctx, name)
	return l.note(name, err), err
}

// begin records that the removal of a thing begins. It returns false if the removal was canceled.
func (l *leftovers) begin(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.names[name]; !known {
		return false
	}
	l.now, l.again = name, false
	return true
}

// keep cancels the removal of a thing. It waits for the end of a running removal.
func (l *leftovers) keep(ctx context.Context, name string) error {
	if l.cancel(name) {
		return nil
	}
	select {
	case l.removal <- struct{}{}:
		defer func() { <-l.removal }()
	case <-ctx.Done():
		return fmt.Errorf("%s is still being removed: %w", name, ctx.Err())
	}
	l.cancel(name) // the removal may have failed
	return nil
}

// cancel cancels the removal of a thing, and returns false if the removal is running. It is atomic, so that a removal cannot begin in
// between.
func (l *leftovers) cancel(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == name {
		return false
	}
	delete(l.names, name)
	return true
}

// note records the result of a removal, and reports whether it is the first failure after a success.
func (l *leftovers) note(name string, err error) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = ""
	if err == nil || errdefs.IsNotFound(err) {
		l.quiet = false
		if l.names[name] = (leftover{}); !l.again {
			delete(l.names, name)
		}
		return false
	}
	one := l.names[name]
	wait := min(removeAgain<<min(one.failed, 8), removeSlowest)
	if after, says := errdefs.RetryAfterOf(err); says {
		wait = max(wait, after)
	}
	l.names[name] = leftover{failed: one.failed + 1, due: time.Now().Add(wait)}
	first, l.quiet = !l.quiet, true
	return first
}

// next returns the time until the next removal.
func (l *leftovers) next() (wait time.Duration, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.names {
		if until := max(time.Until(one.due), 0); !more || until < wait {
			wait, more = until, true
		}
	}
	return wait, more
}
