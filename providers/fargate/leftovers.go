// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// leftovers are secrets of pods that have ended, which are to be removed.
type leftovers struct {
	mu    sync.Mutex
	names map[string]bool // guarded by mu
	quiet bool            // guarded by mu; that it fails was said
	done  map[string]bool // guarded by mu; ARNs of tasks that have ended, of which the secret was taken down
}

func (l *leftovers) add(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil {
		l.names = map[string]bool{}
	}
	l.names[name] = true
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

// remove removes what is left over. What fails is tried again with the next round.
func (p *provider) remove(ctx context.Context) {
	l := &p.leftovers
	l.mu.Lock()
	var names []string
	for name := range l.names {
		names = append(names, name)
	}
	l.mu.Unlock()
	slices.Sort(names)
	for _, name := range names {
		p.made.lose(name)
		if err := p.service.drop(ctx, name); err != nil && !errdefs.IsNotFound(err) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if !l.quiet && ctx.Err() == nil {
				l.quiet = true
				log.G(ctx).WithError(err).Warn("The secret of a pod that has ended is not removed yet")
			}
			return
		}
		l.mu.Lock()
		l.quiet = false
		delete(l.names, name)
		l.mu.Unlock()
	}
}
