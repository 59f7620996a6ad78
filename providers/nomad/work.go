// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"slices"
	"sync"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	firstFailure, longestFailure = time.Second, time.Minute // between attempts after a failure
	killPatience                 = 5 * time.Second          // for signals to the allocations of a pod
)

// due returns the next action for a pod, or nil if there is none. A failed action waits, longer each time.
func (d *driver) due(ctx context.Context, uid types.UID, now time.Time) func() {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	e := d.store.pods[uid]
	if e == nil || e.hidden {
		return nil
	}
	if e.busy {
		e.skipped = true
		return nil
	}
	what, do := d.next(e, now)
	if do != nil && what == e.failed.action && now.Before(e.failed.at) {
		return nil
	}
	if do == nil {
		if !now.Before(e.failed.at) {
			e.failed = failure{} // the failed work is no longer due
		}
		return nil
	}
	e.busy, e.skipped = true, false
	return func() {
		err := do(ctx)
		d.store.mu.Lock()
		defer d.store.mu.Unlock()
		e.busy = false
		if e.skipped && d.store.pods[uid] == e {
			d.store.touch(e)
		}
		if err == nil || ctx.Err() != nil {
			e.failed = failure{}
			return
		}
		asked, _ := errdefs.RetryAfterOf(err)
		if e.failed.action != what {
			e.failed = failure{} // the failure of one action does not delay another
		}
		wait := max(min(max(2*e.failed.wait, firstFailure), longestFailure), asked)
		e.failed = failure{action: what, at: time.Now().Add(wait), wait: wait}
		log.G(ctx).WithError(err).Warnf("Pod %s/%s: it was not possible to %s; it is tried again in %s", e.pod.Namespace, e.pod.Name, what, wait)
	}
}

// next returns the next action for a pod, or nil if there is none. The caller holds the lock.
func (d *driver) next(e *entry, now time.Time) (what string, do func(context.Context) error) {
	a, moved := e.first()
	switch {
	case (e.deleted && e.stopping || e.purged) && e.stopEval == "" && e.over():
		return "forget it", func(ctx context.Context) error { return d.forget(ctx, e) }
	case !d.lostAt(e).IsZero() && now.After(d.lostAt(e)) && d.outdated() == nil: // without news the client may be back
		return "give it up", func(ctx context.Context) error { return d.lose(ctx, e) }
	case moved && !e.stopping: // a pod is one allocation
		return "stop its second allocation", func(ctx context.Context) error { return d.stop(ctx, e, time.Time{}) }
	case a != nil && a.NetworkStatus == nil && a.ClientStatus == nomadapi.AllocClientStatusRunning && e.askedIP != a.ID:
		return "ask for its address", func(ctx context.Context) error { return d.askAddress(ctx, e, a.ID) }
	}
	return "", nil
}

// kill returns a function that sends a due kill signal to a pod whose grace period is over, or nil if none is due. The signal is
// repeated in case the tasks were about to start. It does not block other actions, because a driver may hang.
func (d *driver) kill(ctx context.Context, uid types.UID, now time.Time) func() {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	e := d.store.pods[uid]
	if e == nil || e.killing || !e.stopping || e.killAt.IsZero() || now.Before(e.killAt) {
		return nil
	}
	var alive []string
	for id, a := range e.allocs {
		if !terminal(a) && a.ClientStatus != nomadapi.AllocClientStatusUnknown { // Nomad cannot reach a client that is away
			alive = append(alive, id)
		}
	}
	if len(alive) == 0 {
		return nil
	}
	e.killing, e.killWait = true, min(max(2*e.killWait, lookEvery), longestFailure)
	e.killAt = now.Add(e.killWait)
	return func() {
		ctx, cancel := context.WithTimeout(ctx, killPatience)
		defer cancel()
		for _, id := range alive {
			_ = d.client.signal(ctx, id, "", "SIGKILL") // tasks that do not run cannot be signalled
		}
		d.store.mu.Lock()
		defer d.store.mu.Unlock()
		e.killing = false
	}
}

// forget removes the remains of a stopped pod.
func (d *driver) forget(ctx context.Context, e *entry) error {
	for _, path := range slices.Clone(e.variables) {
		if err := d.client.removeVariable(ctx, path, 0); err != nil {
			return err
		}
	}
	var index uint64
	if !e.purged {
		var err error
		if index, err = d.client.purge(ctx, e.jobID); err != nil {
			return err
		}
	}
	d.telling.Lock()
	defer d.telling.Unlock()
	d.store.mu.Lock()
	d.store.purged[e.jobID] = index
	d.store.remove(e)
	d.store.mu.Unlock()
	d.provider.Cache().Forget(e.pod.UID)
	return nil
}

// askAddress asks for the address of an allocation from a list, because lists have no addresses.
func (d *driver) askAddress(ctx context.Context, e *entry, id string) error {
	a, err := d.client.allocation(ctx, id)
	if err != nil {
		return err
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	e.askedIP = id
	d.store.allocation(e, a)
	return nil
}

// lostAt returns when a pod counts as lost because its client is away, or zero if the client is not away. The
// caller holds the lock.
func (d *driver) lostAt(e *entry) time.Time {
	if e.away() == "" || e.lost {
		return time.Time{}
	}
	return e.awaySince.Add(d.config.LostAfter.Duration)
}

// lose gives up a pod whose client is away for too long. It stops the job, so the client ends the remaining tasks when it is back.
// Nomad itself gives up only allocations of jobs that may get another allocation.
func (d *driver) lose(ctx context.Context, e *entry) error {
	d.store.mu.Lock()
	away := e.away()
	d.store.mu.Unlock()
	if away == "" {
		return nil
	}
	a, err := d.client.allocation(ctx, away) // the client may be back without an event
	if err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	d.store.mu.Lock()
	if err == nil {
		d.store.allocation(e, a)
	}
	back := e.away() == ""
	d.store.mu.Unlock()
	if back {
		return nil
	}
	if err := d.stop(ctx, e, time.Time{}); err != nil {
		return err
	}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	e.lost = true
	d.store.touch(e)
	return nil
}

// Follow implements service.Follower.
func (d *driver) Follow(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { d.followNodes(ctx) })
	running.Go(func() { d.followEvents(ctx) })
	running.Go(func() { d.listAgain(ctx) })
	d.work(ctx)
	running.Wait()
}

// work reports changes and performs due actions, until ctx ends.
func (d *driver) work(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var running sync.WaitGroup
	do := func(room chan struct{}, f func()) {
		if f == nil {
			return
		}
		running.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			f()
		})
	}
	requests, signals := make(chan struct{}, together), make(chan struct{}, together)
	for ctx.Err() == nil {
		select {
		case <-d.store.wake:
		case <-ticker.C:
			d.lookAgain()
		case <-ctx.Done():
		}
		d.store.mu.Lock()
		changed := d.store.dirty
		d.store.dirty = map[types.UID]bool{}
		d.store.mu.Unlock()
		for uid := range changed {
			d.tell(ctx, uid)
			now := time.Now()
			do(requests, d.due(ctx, uid, now))
			do(signals, d.kill(ctx, uid, now))
		}
	}
	running.Wait()
}

// lookAgain marks the pods for which an action may have become due without a change at Nomad.
func (d *driver) lookAgain() {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	for uid, e := range d.store.pods {
		if e.stopping || !e.failed.at.IsZero() || !d.lostAt(e).IsZero() {
			d.store.dirty[uid] = true
		}
	}
}
