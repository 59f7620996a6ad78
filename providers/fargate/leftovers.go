// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// dropAgain is how long a secret that could not be removed is left alone at first, and dropSlowest at most.
const dropAgain, dropSlowest = 2 * time.Second, 5 * time.Minute

// leftovers are secrets of pods that have ended, which are to be removed.
type leftovers struct {
	wake chan struct{} // holds a value when there is another one

	mu    sync.Mutex
	names map[string]leftover // guarded by mu
	quiet bool                // guarded by mu; that it fails was said
	done  map[string]bool     // guarded by mu; ARNs of tasks that have ended, of which the secret was taken down
}

// leftover is how the removal of a secret went.
type leftover struct {
	failed int       // times in a row
	due    time.Time // when it is tried next
}

func (l *leftovers) add(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil {
		l.names = map[string]leftover{}
	}
	if _, known := l.names[name]; known {
		return
	}
	l.names[name] = leftover{}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take takes down the secrets of tasks that have ended. Those that ECS has forgotten are forgotten.
func (l *leftovers) take(m mapping, tasks []types.Task) {
	for _, t := range tasks {
		arn, tags := aws.ToString(t.TaskArn), tagsOf(t)
		pod, ours := m.owner.Owned(tags)
		if !ours || tags[tagOwn] == "" || !ended(t) {
			continue
		}
		l.mu.Lock()
		known := l.done[arn]
		if l.done == nil {
			l.done = map[string]bool{}
		}
		l.done[arn] = true
		l.mu.Unlock()
		if !known {
			l.add(m.ownName(string(pod.UID)))
		}
	}
}

// keep forgets of what was taken down all but these tasks.
func (l *leftovers) keep(arns []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for arn := range l.done {
		if !slices.Contains(arns, arn) {
			delete(l.done, arn)
		}
	}
}

// removeLeftovers removes what is left over until ctx ends. It is beside the rounds, which ask for states: a service that is slow to remove holds none up.
func (p *provider) removeLeftovers(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.leftovers.wake:
		case <-timer.C:
		}
		timer.Stop()
		if wait, more := p.remove(ctx); more {
			timer.Reset(wait)
		}
	}
}

// remove removes what is due, and says when something is again. One that fails holds no other up.
func (p *provider) remove(ctx context.Context) (wait time.Duration, more bool) {
	l := &p.leftovers
	for _, name := range l.due() {
		p.made.lose(name)
		err := p.service.drop(ctx, name)
		if ctx.Err() != nil {
			return 0, false
		}
		if first := l.note(name, err); first {
			log.G(ctx).WithError(err).Warn("The secret of a pod that has ended is not removed yet")
		}
	}
	return l.next()
}

// due returns the names of what is to be removed now.
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

// note takes down how the removal of a secret went, and reports whether it is the first that failed after others that did not.
func (l *leftovers) note(name string, err error) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil || errdefs.IsNotFound(err) {
		l.quiet = false
		delete(l.names, name)
		return false
	}
	one := l.names[name]
	wait := min(dropAgain<<min(one.failed, 8), dropSlowest)
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
