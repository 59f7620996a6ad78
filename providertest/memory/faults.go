// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Names of methods for a Fault and Backend.Fault.
const (
	Create = "create" // CreatePod
	Update = "update" // UpdatePod
	Delete = "delete" // DeletePod
	Get    = "get"    // GetPod
	Status = "status" // GetPodStatus
	List   = "list"   // GetPods
	Notify = "notify" // NotifyPods
	Ping   = "ping"   // Ping
)

// Fault is a failure of calls. It hits the calls that it matches: the fields Method, Key and UID match
// everything when they are empty. Only the first matching fault hits a call. Its effects have this order: Delay,
// Hang, Panic, Err, LoseAnswer.
type Fault struct {
	Method string
	Key    string    // namespace/name
	UID    types.UID // of CreatePod, UpdatePod and DeletePod
	After  int       // number of calls before the first hit
	Times  int       // number of calls to hit; 0: all until Heal

	Delay time.Duration // before the effect; the end of ctx ends the delay, unless Deaf
	// Hang makes the call hang until ctx ends, and return its error, or until Heal, after which the call goes
	// on.
	Hang bool
	// Deaf does not hear the end of ctx.
	Deaf  bool
	Panic any // the value of the panic, before the effect
	Err   error
	// LoseAnswer performs the effect and then returns Err, or ErrUnwell.
	LoseAnswer bool
}

// Inject adds a fault.
func (b *Backend) Inject(f Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, &f)
}

// Heal ends all faults, lies and delays of reports, of every kind, and lets hanging calls go on. It delivers
// delayed reports.
func (b *Backend) Heal() {
	b.mu.Lock()
	b.faults, b.lies, b.Fault = nil, nil, nil
	if b.healed != nil {
		close(b.healed)
		b.healed = nil
	}
	b.mu.Unlock()
	b.Reports(Reports{})
}

// Script sets Backend.Fault while the controllers run.
func (b *Backend) Script(fault func(ctx context.Context, method, key string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Fault = fault
}

// injectFault injects the fault of a call. The caller returns lost after the effect of the call.
func (b *Backend) injectFault(ctx context.Context, method, key string, uid types.UID) (lost, err error) {
	b.mu.Lock()
	script, fault := b.Fault, b.findFault(method, key, uid)
	if fault != nil && b.healed == nil {
		b.healed = make(chan struct{}) // made here: a Backend may be made outside of the bubble in which it is used
	}
	healed := b.healed
	b.mu.Unlock()
	if script != nil {
		if err := script(ctx, method, key); err != nil {
			return nil, err
		}
	}
	if fault == nil {
		return nil, nil
	}
	return fault.applyFault(ctx, healed, method+" "+key)
}

// findFault returns the fault of a call, or nil. The caller holds mu.
func (b *Backend) findFault(method, key string, uid types.UID) *Fault {
	for _, f := range b.faults {
		switch {
		case f.Method != "" && f.Method != method, f.Key != "" && f.Key != key, f.UID != "" && f.UID != uid, f.Times < 0:
		case f.After > 0:
			f.After--
		default:
			hit := *f
			if f.Times == 1 {
				f.Times = -1 // used up
			} else if f.Times > 1 {
				f.Times--
			}
			return &hit
		}
	}
	return nil
}

func (f *Fault) applyFault(ctx context.Context, healed <-chan struct{}, call string) (lost, err error) {
	done := ctx.Done()
	if f.Deaf {
		done = nil
	}
	var delayed <-chan time.Time
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		delayed = timer.C
	}
	if f.Delay > 0 || f.Hang {
		if f.Hang {
			delayed = nil
		}
		select {
		case <-delayed:
		case <-healed:
		case <-done:
			return nil, ctx.Err()
		}
	}
	if f.Panic != nil {
		panic(f.Panic)
	}
	if f.Err == nil && !f.LoseAnswer {
		return nil, nil
	}
	err = f.Err
	if err == nil {
		err = fmt.Errorf("%s: the answer is lost: %w", call, ErrUnwell)
	}
	if f.LoseAnswer {
		return err, nil
	}
	return nil, err
}

// ErrUnwell is the error of FailFirst and of a lost answer.
var ErrUnwell = errors.New("backend is not well")

// FailFirst returns a script that fails the first n calls of a method.
func FailFirst(method string, n int) func(context.Context, string, string) error {
	var mu sync.Mutex
	return func(_ context.Context, m, key string) error {
		mu.Lock()
		defer mu.Unlock()
		if m != method || n == 0 {
			return nil
		}
		n--
		return fmt.Errorf("%s of %s: %w", m, key, ErrUnwell)
	}
}
