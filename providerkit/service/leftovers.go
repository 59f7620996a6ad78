// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// removeAgain is how long what could not be removed is left alone at first, and removeSlowest at most.
const removeAgain, removeSlowest = 2 * time.Second, 5 * time.Minute

// leftovers are the names of things to remove.
type leftovers struct {
	remove func(context.Context, string) error
	wake   chan struct{} // holds a value when there is another one

	mu    sync.Mutex
	names map[string]leftover // guarded by mu
	quiet bool                // guarded by mu; a failure was logged, and no removal has succeeded since
	now   string              // guarded by mu; what is being removed
	again bool                // guarded by mu; it was left behind once more meanwhile
}

// leftover is how the removal of a thing went.
type leftover struct {
	failed int       // times in a row
	due    time.Time // when it is tried next
}

func newLeftovers(remove func(context.Context, string) error) *leftovers {
	return &leftovers{remove: remove, wake: make(chan struct{}, 1), names: map[string]leftover{}}
}

// add lets a thing be removed.
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

// run removes what is left behind until ctx ends. It runs beside the lists, which a slow removal must not hold up.
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
			l.begin(name)
			err := l.remove(ctx, name)
			if ctx.Err() != nil {
				return
			}
			if l.note(name, err) {
				log.G(ctx).WithError(err).WithField("name", name).Warn("What a pod has left behind is not removed yet")
			}
		}
		timer.Stop()
		if wait, more := l.next(); more {
			timer.Reset(wait)
		}
	}
}

// due returns what is to be removed now.
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

// begin notes that a thing is being removed.
func (l *leftovers) begin(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now, l.again = name, false
}

// note takes down how a removal went, and reports whether it is the first failure after a success.
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

// next says how long it is until something is to be removed.
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
