// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"context"
	"maps"
	"slices"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	firstFailure, longestFailure = time.Second, time.Minute // between two tries of what failed about a pod
	killPatience                 = 5 * time.Second          // for signals to the allocations of a pod
)

// due returns what is to be done about a pod, nil if there is nothing. What has failed waits, longer each time.
func (p *provider) due(ctx context.Context, uid types.UID, now time.Time) func() {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	e := p.store.pods[uid]
	if e == nil || e.hidden {
		return nil
	}
	if e.busy {
		e.skipped = true
		return nil
	}
	what, do := p.next(e, now)
	if do == nil {
		maps.DeleteFunc(e.failed, func(_ string, f failure) bool { return !now.Before(f.at) }) // it is not due any more
		return nil
	}
	e.busy, e.skipped = true, false
	return func() {
		err := do(ctx)
		p.store.mu.Lock()
		defer p.store.mu.Unlock()
		e.busy = false
		if e.skipped && p.store.pods[uid] == e {
			p.store.touch(e)
		}
		if err == nil || ctx.Err() != nil {
			delete(e.failed, what)
			return
		}
		wait := min(max(2*e.failed[what].wait, firstFailure), longestFailure)
		if asked, says := errdefs.RetryAfterOf(err); says {
			wait = max(wait, asked)
		}
		e.failed[what] = failure{at: time.Now().Add(wait), wait: wait}
		log.G(ctx).WithError(err).Warnf("Pod %s/%s: it was not possible to %s; it is tried again in %s", e.pod.Namespace, e.pod.Name, what, wait)
	}
}

// What may be due about a pod.
const (
	toForget = "forget it"
	toLose   = "give it up"
	toStop   = "stop its second allocation"
	toAsk    = "ask for its address"
	toRenew  = "replace its tokens"
)

// next is what is to be done next about a pod, nil if there is nothing. The lock is held.
func (p *provider) next(e *entry, now time.Time) (what string, do func(context.Context) error) {
	a, moved := e.first()
	may := func(what string) bool { return !now.Before(e.failed[what].at) }
	switch {
	case may(toForget) && (e.deleted && e.stopping || e.purged) && e.stopEval == "" && e.over():
		return toForget, func(ctx context.Context) error { return p.forget(ctx, e) }
	case may(toLose) && !p.lostAt(e).IsZero() && now.After(p.lostAt(e)) && p.outdated() == nil: // without news the client may be back
		return toLose, func(ctx context.Context) error { return p.lose(ctx, e) }
	case may(toStop) && moved && !e.stopping: // a pod is one allocation
		return toStop, func(ctx context.Context) error { return p.stop(ctx, e, time.Time{}) }
	case may(toAsk) && a != nil && a.NetworkStatus == nil && a.ClientStatus == nomadapi.AllocClientStatusRunning && e.askedIP != a.ID:
		return toAsk, func(ctx context.Context) error { return p.askAddress(ctx, e, a.ID) }
	case may(toRenew) && !e.again.IsZero() && now.After(e.again) && !e.stopping && (a == nil || !terminal(a)): // Kubernetes has no token for a pod that has ended
		return toRenew, func(ctx context.Context) error { return p.renew(ctx, e) }
	}
	return "", nil
}

// kill returns a signal that is due for a pod whose grace is over, nil if none is. It is sent again, if the tasks were about to start, but a driver that
// hangs holds up nothing else.
func (p *provider) kill(ctx context.Context, uid types.UID, now time.Time) func() {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	e := p.store.pods[uid]
	if e == nil || e.killing || !e.stopping || e.killAt.IsZero() || now.Before(e.killAt) {
		return nil
	}
	var alive []string
	for id, a := range e.allocs {
		if !terminal(a) && a.ClientStatus != nomadapi.AllocClientStatusUnknown { // no way leads to a client that is away
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
			_ = p.client.signal(ctx, id, "SIGKILL") // tasks that do not run cannot be signalled
		}
		p.store.mu.Lock()
		defer p.store.mu.Unlock()
		e.killing = false
	}
}

// forget removes what is left of a pod that has stopped.
func (p *provider) forget(ctx context.Context, e *entry) error {
	for _, path := range slices.Clone(e.variables) {
		if err := p.client.removeVariable(ctx, path); err != nil {
			return err
		}
	}
	var index uint64
	if !e.purged {
		var err error
		if index, err = p.client.purge(ctx, e.jobID); err != nil {
			return err
		}
	}
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	p.store.purged[e.jobID] = index
	p.store.remove(e)
	return nil
}

// askAddress asks for the address of an allocation that a list told of, as lists have none.
func (p *provider) askAddress(ctx context.Context, e *entry, id string) error {
	a, err := p.client.allocation(ctx, id)
	if err != nil {
		return err
	}
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	e.askedIP = id
	p.store.allocation(e, a)
	return nil
}
