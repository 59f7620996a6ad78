// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// endPod brings the pod to its end: containers, sandboxes, volumes. After a deletion, it removes everything of the pod.
func (p *planner) endPod() {
	busy := p.cancelStarts()
	for c := range p.aliveInstances() {
		busy = true
		p.killInstance(c, kill{grace: p.endGrace(), last: true}, p.hasTurn(c.Name))
	}
	if busy || p.mem.sandbox.busy || p.mem.volumes.busy || p.unshownSandbox() || !p.stopSandboxes() {
		return
	}
	if !p.mem.finished {
		if p.mem.finish.isDue(p) {
			p.addAction(Action{Kind: Finish})
		}
		return
	}
	switch {
	case p.mem.deletion != nil:
		p.clearPod()
	case p.mem.Reclaim:
		p.clearContainers()
	}
}

// endGrace returns the grace period of the containers when the pod must end.
func (p *planner) endGrace() time.Duration {
	switch {
	case p.mem.deletion != nil:
		return max(0, p.mem.deletion.by.Sub(p.now))
	case p.mem.Eviction != nil && p.mem.Eviction.Grace != nil:
		return *p.mem.Eviction.Grace
	}
	return podGrace(p.pod)
}

// cancelStarts ends the starts in progress, and reports whether there are any. It waits for an instance that the runtime's state may lack.
func (p *planner) cancelStarts() (busy bool) {
	for _, name := range slices.Sorted(maps.Keys(p.mem.containers)) {
		c := p.mem.containerRecord(name)
		if c.starting {
			busy = true
			if !c.cancelled {
				p.addAction(Action{Kind: CancelStart, Container: name})
			}
		} else if p.isUnshown(name) {
			busy = true
		}
	}
	return busy
}

// hasTurn reports whether a container may be stopped: a sidecar stops after the main containers, and after the sidecar that follows it in the spec.
func (p *planner) hasTurn(name string) bool {
	inits := p.pod.Spec.InitContainers
	at := slices.IndexFunc(inits, func(c corev1.Container) bool { return c.Name == name && Sidecar(&c) })
	if at < 0 {
		return true
	}
	for i := range p.pod.Spec.Containers {
		if p.mayRun(p.pod.Spec.Containers[i].Name) {
			return false
		}
	}
	for i := range inits[at+1:] {
		if c := &inits[at+1+i]; Sidecar(c) && p.mayRun(c.Name) {
			return false
		}
	}
	return true
}

func (p *planner) mayRun(name string) bool {
	return slices.ContainsFunc(p.byName[name], func(c Container) bool { return c.State == Running || c.State == Unknown })
}

// clearPod removes the leftovers of an ended and deleted pod from the runtime.
func (p *planner) clearPod() {
	left := false
	if p.clearContainers() {
		return
	}
	for i := range p.boxes {
		left = true
		p.removeSandbox(&p.boxes[i])
	}
	p.plan.Gone = !left
}

// clearContainers removes the containers of an ended pod, and reports whether there are any.
func (p *planner) clearContainers() (left bool) {
	for _, name := range slices.Sorted(maps.Keys(p.byName)) {
		for i := range p.byName[name] {
			left = true
			p.removeInstance(&p.byName[name][i])
		}
	}
	return left
}

func (p *planner) removeInstance(c *Container) {
	if p.mem.instanceRecord(c.ID).remove.isDue(p) {
		p.addAction(Action{Kind: RemoveContainer, Container: c.Name, ID: c.ID})
	}
}
