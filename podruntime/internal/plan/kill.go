// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"iter"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// kill describes how an instance ends.
type kill struct {
	grace   time.Duration
	message string // of the event; "" selects the message for the end of a pod
	restart bool   // the container restarts, independently of its policy
	last    bool   // the pod ends
}

// aliveInstances ranges over the instances that may run, in a stable order.
func (p *planner) aliveInstances() iter.Seq[*Container] {
	return func(yield func(*Container) bool) {
		for _, name := range slices.Sorted(maps.Keys(p.byName)) {
			for i := range p.byName[name] {
				c := &p.byName[name][i]
				if (c.State == Running || c.State == Unknown) && !yield(c) {
					return
				}
			}
		}
	}
}

// killInstance takes the next step to end an instance: the Kill event, the preStop hook, or the stop. The grace period includes the hook, and the
// wait for the instance's turn.
func (p *planner) killInstance(c *Container, k kill, turn bool) {
	i := p.mem.instanceRecord(c.ID)
	by := i.killBy
	if !i.kill {
		by = p.now.Add(k.grace)
		p.announceKill(c, k, by)
	}
	if d := p.mem.deletion; d != nil && d.by.Before(by) {
		by = d.by
	}
	if i.stopped && p.now.Before(i.stopEnd.Add(settleAfter)) {
		p.callAgain(i.stopEnd.Add(settleAfter))
		return // the runtime's state will show the end
	}
	if by.After(p.now) && (p.runHook(c, i, by) || !turn) {
		p.callAgain(by)
		return
	}
	p.stopInstance(c, i, by, k.last)
}

func (p *planner) announceKill(c *Container, k kill, by time.Time) {
	if k.message == "" {
		k.message = "Stopping container " + c.Name
	}
	p.addAction(Action{
		Kind: Kill, Container: c.Name, ID: c.ID, until: by, restart: k.restart,
		Event: &Event{corev1.EventTypeNormal, "Killing", k.message},
	})
}

// runHook runs the preStop hook, and reports whether to wait for it.
func (p *planner) runHook(c *Container, i instanceMemory, by time.Time) bool {
	spec := containerNamed(p.pod, c.Name)
	if spec == nil || spec.Lifecycle == nil || spec.Lifecycle.PreStop == nil || i.hookDone || i.stops > 0 || c.State != Running {
		return false
	}
	if !i.hook.busy {
		p.addAction(Action{Kind: PreStop, Container: c.Name, ID: c.ID, Grace: by.Sub(p.now), until: by})
	}
	return true
}

// stopInstance stops an instance. It stops the instance again if the deadline becomes earlier.
func (p *planner) stopInstance(c *Container, i instanceMemory, by time.Time, last bool) {
	grace := max(by.Sub(p.now), minGrace)
	grace = (grace + time.Second - 1).Truncate(time.Second)
	until := p.now.Add(grace)
	if i.stops > 0 && i.stopBy.Sub(until) < time.Second {
		return
	}
	if i.stops == 0 && !i.stop.isDue(p) {
		return
	}
	p.addAction(Action{Kind: Stop, Container: c.Name, ID: c.ID, Grace: grace, Last: last, until: until})
}
