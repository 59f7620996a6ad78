// SPDX-License-Identifier: Apache-2.0

package plan

import corev1 "k8s.io/api/core/v1"

// renewSandbox makes a sandbox if there is none for new containers. All containers in older sandboxes have ended.
func (p *planner) renewSandbox() {
	if p.mem.sandbox.busy || p.unshownSandbox() {
		return
	}
	if !p.stopSandboxes() {
		return
	}
	if len(p.boxes) > 0 {
		p.retireSandboxes(&p.boxes[0]) // the next sandbox continues its number
	}
	if !p.mem.sandbox.isDue(p) {
		return
	}
	a := Action{Kind: RunSandbox}
	if len(p.boxes) > 0 {
		a.Attempt = p.boxes[0].Attempt + 1
		a.Event = &Event{corev1.EventTypeNormal, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created."}
	}
	p.addAction(a)
}

// unshownSandbox reports whether the runtime's state may lack the last sandbox.
func (p *planner) unshownSandbox() bool {
	if p.mem.sandboxID == "" {
		return false
	}
	for i := range p.boxes {
		if p.boxes[i].ID == p.mem.sandboxID {
			return false
		}
	}
	until := p.mem.sandboxAt.Add(settleAfter)
	if !p.now.Before(until) {
		return false
	}
	p.callAgain(until)
	return true
}

// stopSandboxes stops all sandboxes, and reports whether they have stopped. A sandbox that is not ready may still have a network, so it is also
// stopped once.
func (p *planner) stopSandboxes() bool {
	all := true
	for i := range p.boxes {
		all = p.stopSandbox(&p.boxes[i]) && all
	}
	return all
}

func (p *planner) stopSandbox(box *Sandbox) bool {
	s := p.mem.sandboxRecord(box.ID)
	if s.stopped {
		return true
	}
	if s.stop.isDue(p) {
		p.addAction(Action{Kind: StopSandbox, ID: box.ID, Attempt: box.Attempt})
	}
	return false
}

// retireSandboxes stops and removes all empty sandboxes except box.
func (p *planner) retireSandboxes(box *Sandbox) {
	for i := range p.boxes {
		old := &p.boxes[i]
		if old.ID == box.ID {
			continue
		}
		has, alive := p.instancesIn(old)
		if !alive && p.stopSandbox(old) && !has {
			p.removeSandbox(old)
		}
	}
}

// instancesIn reports whether the sandbox has containers, and whether any of them may be running.
func (p *planner) instancesIn(box *Sandbox) (has, alive bool) {
	for _, list := range p.byName {
		for i := range list {
			if c := &list[i]; c.SandboxID == box.ID {
				has = true
				alive = alive || c.State == Running || c.State == Unknown
			}
		}
	}
	return has, alive
}

func (p *planner) removeSandbox(box *Sandbox) {
	if p.mem.sandboxRecord(box.ID).remove.isDue(p) {
		p.addAction(Action{Kind: RemoveSandbox, ID: box.ID, Attempt: box.Attempt})
	}
}
