// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// fenceAge is how old the last renewal of the lease may be for an effect on pods.
	fenceAge = 10 * time.Second
	// fenceGap is how long a time without a renewal makes what was known of the pods
	// too old to act on. It is longer than renewals take with a slow API server.
	fenceGap = 15 * time.Second
)

// errFenced is the answer to work on a pod that must wait: it is not known at the
// moment that no other process acts for the node.
var errFenced = errors.New("this process does not hold the lease of the node for certain")

// fence stands in front of everything that a process does to pods, at the backend
// and in the API server: it lets through only what is begun while the lease of the node
// is certainly this process's. A nil fence lets everything through.
//
// It counts tenures: a new one begins when the lease was gained, and after a gap. What
// was read in one tenure must not be acted on in another, so work enters first and
// is asked for its tenure before each effect.
type fence struct {
	wanted  chan struct{} // capacity 1: a renewal is wanted before it is due
	changed chan struct{} // capacity 1: there may be something to admit or to let go on

	mu       sync.Mutex
	off      bool        // guarded by mu: there is no lease to go by
	held     bool        // guarded by mu
	holder   processMark // guarded by mu: who has the lease, if held is false
	sent     time.Time   // guarded by mu: when the last renewal that succeeded was sent
	silent   time.Time   // guarded by mu: when a renewal was last not answered
	tenure   int         // guarded by mu
	admitted int         // guarded by mu: the tenure for which the pods were read anew
	anew     bool        // guarded by mu: another process may have acted before this tenure
	refused  bool        // guarded by mu: something waits
}

func newFence() *fence {
	return &fence{wanted: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
}

type tenureKey struct{}

// inSilence is the tenure of work that only stops pods whose active deadline has passed.
const inSilence = -1

// enter returns the context for work on a pod that may have an effect, or errFenced.
func (f *fence) enter(ctx context.Context) (context.Context, error) {
	if f == nil {
		return ctx, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open() {
		return ctx, errFenced
	}
	return context.WithValue(ctx, tenureKey{}, f.tenure), nil
}

// allow is asked immediately before an effect, with the context from enter. It
// never waits; what it refuses begins anew.
func (f *fence) allow(ctx context.Context) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open() || ctx.Value(tenureKey{}) != f.tenure {
		return errFenced
	}
	return nil
}

// allowStop is allow for the stop of a pod. It also lets through what a kubelet does while the API server does not
// answer: the daemon is awake, for it has just asked in vain, and knows of nobody who has taken over the node.
func (f *fence) allowStop(ctx context.Context) error {
	err := f.allow(ctx)
	if err == nil || ctx.Value(tenureKey{}) != inSilence || !f.isSilent() {
		return err
	}
	return nil
}

// unanswered notes that a renewal was not answered.
func (f *fence) unanswered() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silent = time.Now()
}

// isSilent reports whether the API server does not answer the holder of the lease.
func (f *fence) isSilent() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.off && f.held && f.silent.After(f.sent) && elapsed(f.silent, time.Now()) < fenceGap
}

// open is called with mu held.
func (f *fence) open() bool {
	if f.off {
		return true
	}
	age := elapsed(f.sent, time.Now())
	if f.held && age > fenceAge/2 {
		wake(f.wanted) // so that steady work is never held up by a renewal
	}
	if f.held && f.admitted == f.tenure && age < fenceAge {
		return true
	}
	f.refused = true
	return false
}

// elapsed is the time that has passed since then by the clock that shows more: the
// monotonic clock stands still while a machine sleeps, and the other one can be set back.
func elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// renewed notes that a renewal which was sent then has succeeded. anew says that
// the lease was another process's, or may have been.
func (f *fence) renewed(sent time.Time, anew bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if anew || !f.held || elapsed(f.sent, time.Now()) > fenceGap {
		f.tenure++
		f.anew = f.anew || anew
	}
	f.off, f.held, f.holder, f.sent = false, true, processMark{}, sent
	f.tell()
}

// lose notes that another process has the lease.
func (f *fence) lose(holder processMark) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.off, f.held, f.holder, f.anew = false, false, holder, true
}

// disable opens the fence, until the lease can be renewed or is seen to be another's.
func (f *fence) disable() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.off, f.held = true, false
	f.tell()
}

// tell is called with mu held.
func (f *fence) tell() {
	if f.refused || f.admitted != f.tenure {
		f.refused = false
		wake(f.changed)
	}
}

// pending returns the tenure for which the pods have to be read anew, if there is one.
func (f *fence) pending() (tenure int, anew, yes bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tenure, f.anew, f.held && f.tenure != f.admitted
}

// admit notes that the pods were read anew since the tenure began.
func (f *fence) admit(tenure int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.admitted = tenure
	if tenure == f.tenure && f.held {
		f.anew = false
	}
}

// fresh reports whether the lease is certainly ours at the moment.
func (f *fence) fresh() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held && elapsed(f.sent, time.Now()) < fenceAge
}

// current is the tenure, for those who ask whether it still is.
func (f *fence) current() int {
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tenure
}

// standsBy returns the process that has the lease instead of this one. It does
// while it is not known who has it, too.
func (f *fence) standsBy() (holder processMark, yes bool) {
	if f == nil {
		return processMark{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.holder, !f.off && !f.held
}

// wake leaves a token in a channel of capacity 1.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
