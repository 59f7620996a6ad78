// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// MaxAge is the largest age of the last renewal of the lease at which effects on pods are allowed.
	MaxAge = 10 * time.Second
	// renewAge is the age of a renewal at which steady work requests the next renewal, early enough for a slow response.
	renewAge = MaxAge * 3 / 4
	// fenceGap is the time without a renewal after which the state of the pods is too old to act on. It is longer than a renewal takes with a slow
	// API server.
	fenceGap = 15 * time.Second
)

// ErrFenced temporarily refuses work on a pod, because another process may act for the node.
var ErrFenced = errors.New("this process does not hold the lease of the node for certain")

// Fence guards all changes of pods that a process makes by itself, at the backend and in the API server. It does not guard user requests through the
// kubelet API. It allows an effect only while this process certainly holds the lease of the node. A nil fence and a disabled fence allow everything.
//
// The fence counts terms. A new term begins when this process gains the lease, and after a gap. State from one term must not cause an effect in
// another term: work calls Enter first, and the fence compares its term before each effect.
type Fence struct {
	// Beyond, if not nil, reports whether something other than the lease has continuously allowed this process to act since then. It is set before
	// the first use of the fence.
	Beyond  func(since time.Time) bool
	Wanted  chan struct{} // capacity 1: a renewal is wanted before it is due
	changed chan struct{} // capacity 1: a term may have begun, or waiting work may continue

	mu      sync.Mutex
	off     bool      // guarded by mu: the lease is not used
	held    bool      // guarded by mu
	holder  Mark      // guarded by mu: the holder of the lease if held is false
	sent    time.Time // guarded by mu: when the last successful renewal was sent
	silent  time.Time // guarded by mu: the last renewal without a response
	term    int       // guarded by mu
	begun   int       // guarded by mu: the term for which the pods were read again
	anew    bool      // guarded by mu: another process may have acted before this term
	refused bool      // guarded by mu: refused work is waiting
}

// NewFence returns a fence that is closed until the call of Renewed or Disable.
func NewFence() *Fence {
	return &Fence{Wanted: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
}

type termKey struct{}

// inSilence is the term of work that only stops pods after their active deadline.
const inSilence = -1

// InSilence returns the context for work that only stops pods after their active deadline. See AllowStop.
func InSilence(ctx context.Context) context.Context {
	return context.WithValue(ctx, termKey{}, inSilence)
}

// Enter returns the context for work that changes a pod, or ErrFenced.
func (f *Fence) Enter(ctx context.Context) (context.Context, error) {
	if f == nil {
		return ctx, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open() {
		return ctx, ErrFenced
	}
	return context.WithValue(ctx, termKey{}, f.term), nil
}

// Allow checks the context of Enter right before an effect. It never waits; refused work starts again.
func (f *Fence) Allow(ctx context.Context) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open() || ctx.Value(termKey{}) != f.term {
		return ErrFenced
	}
	return nil
}

// AllowStop is Allow for the stop of a pod. While the API server does not answer, it also allows the stops that a kubelet makes in this case. The
// process is awake, because it has just sent an unanswered request, and it knows of no other process for the node.
func (f *Fence) AllowStop(ctx context.Context) error {
	err := f.Allow(ctx)
	if err == nil || ctx.Value(termKey{}) != inSilence || !f.Silent() {
		return err
	}
	return nil
}

// Changes receives when refused work may be retried, or when a term can begin. It never receives from a nil fence.
func (f *Fence) Changes() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.changed
}

// Unanswered records a renewal without a response.
func (f *Fence) Unanswered() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silent = time.Now()
}

// Silent reports whether the API server does not answer the holder of the lease.
func (f *Fence) Silent() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.off && f.held && f.silent.After(f.sent) && Elapsed(f.silent, time.Now()) < fenceGap
}

// open reports whether effects are allowed. The caller holds mu.
func (f *Fence) open() bool {
	if f.off {
		return true
	}
	age := Elapsed(f.sent, time.Now())
	beyond := f.Beyond == nil || f.Beyond(f.sent)
	if f.held && (age > renewAge || !beyond) {
		wake(f.Wanted) // so that steady work never waits for a renewal
	}
	if f.held && f.begun == f.term && age < MaxAge && beyond {
		return true
	}
	f.refused = true
	return false
}

// Elapsed returns the time since then by the clock that shows more: the monotonic clock stands still while a machine sleeps, and the wall clock can
// be set back.
func Elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// Renewed records that the renewal of that time has succeeded. anew means that another process had the lease, or
// may have had it.
func (f *Fence) Renewed(sent time.Time, anew bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if anew || !f.held || Elapsed(f.sent, time.Now()) > fenceGap {
		f.term++
		f.anew = f.anew || anew
	}
	f.off, f.held, f.holder, f.sent = false, true, Mark{}, sent
	select {
	case <-f.Wanted: // a request during this renewal
	default:
	}
	f.tell()
}

// Lose records that another process has the lease.
func (f *Fence) Lose(holder Mark) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.off, f.held, f.holder, f.anew = false, false, holder, true
}

// Disable opens the fence until the lease is renewed, or another holder is seen.
func (f *Fence) Disable() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.off, f.held = true, false
	f.tell()
}

// tell signals Changes. The caller holds mu.
func (f *Fence) tell() {
	if f.refused || f.begun != f.term {
		f.refused = false
		wake(f.changed)
	}
}

// Pending returns the term for which the pods must be read again, if there is one.
func (f *Fence) Pending() (term int, anew, yes bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.term, f.anew, f.held && f.term != f.begun
}

// Begin allows the effects of a term, after the pods were read again for it.
func (f *Fence) Begin(term int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = term
	if term == f.term && f.held {
		f.anew = false
	}
}

// Fresh reports whether the lease is certainly ours at the moment.
func (f *Fence) Fresh() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held && Elapsed(f.sent, time.Now()) < MaxAge && (f.Beyond == nil || f.Beyond(f.sent))
}

// Term returns the current term. Callers compare it later.
func (f *Fence) Term() int {
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.term
}

// StandsBy returns the holder of the lease, if it is another process. It also returns yes while the holder is
// unknown.
func (f *Fence) StandsBy() (holder Mark, yes bool) {
	if f == nil {
		return Mark{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.holder, !f.off && !f.held
}

// wake puts a value into a channel of capacity 1.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
