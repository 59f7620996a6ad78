// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// keepDead is the number of dead instances to keep for a container: for the state and the last state in its status.
const keepDead = 2

// keepContainers keeps the containers of a pod in their desired state. Ephemeral containers start at once. The others start one by one, in the order
// of the spec, so a postStart hook delays the containers after it.
func (p *planner) keepContainers(box *Sandbox, volumes bool) {
	s := starter{planner: p, box: box, ready: volumes}
	for i := range p.pod.Spec.EphemeralContainers {
		if c := (*corev1.Container)(&p.pod.Spec.EphemeralContainers[i].EphemeralContainerCommon); p.lastInstance(c.Name) == nil {
			ephemeral := starter{planner: p, box: box, ready: volumes}
			ephemeral.startNext(c)
		}
	}
	for c := range ordinaryContainers(p.pod) {
		s.busy = s.busy || p.mem.containerRecord(c.Name).starting
	}
	if s.runInits() {
		s.startMains()
	}
}

// starter starts containers.
type starter struct {
	*planner
	box   *Sandbox
	ready bool // the volumes are set up
	busy  bool // another container is being started
}

// runInits runs the init containers and keeps sidecars running, and reports whether main containers can be started.
func (s *starter) runInits() bool {
	inits := s.pod.Spec.InitContainers
	frontier, initialized := s.lastInit(), s.Initialized()
	next := 0
	for i := range inits {
		c := &inits[i]
		before := initialized || i < frontier
		inst := s.activeInstance(c.Name)
		switch {
		case before && !Sidecar(c):
			next = i + 1
			continue
		case inst == nil:
			if before || i == next {
				s.startNext(c)
			}
		case inst.State == Running:
			s.checkInstance(c, inst)
		case inst.State == Exited && !Sidecar(c) && inst.ExitCode == 0:
		default:
			s.startNext(c)
		}
		if before || inst != nil && s.isComplete(c, inst) {
			next = i + 1
		}
	}
	return next == len(inits)
}

// isComplete reports whether the containers after an init container can be started.
func (s *starter) isComplete(c *corev1.Container, inst *Container) bool {
	if Sidecar(c) {
		return s.Started(c, inst) && !s.mem.instanceRecord(inst.ID).kill
	}
	return inst.State == Exited && inst.ExitCode == 0
}

func (s *starter) startMains() {
	for i := range s.pod.Spec.Containers {
		c := &s.pod.Spec.Containers[i]
		inst := s.lastInstance(c.Name)
		switch {
		case inst != nil && inst.State == Running:
			if s.activeInstance(c.Name) != nil {
				s.checkInstance(c, inst)
			}
		case inst == nil || s.Restarts(c, inst):
			s.startNext(c)
		}
	}
}

// startNext starts the next instance of a container after its back-off.
func (s *starter) startNext(c *corev1.Container) {
	m := s.mem.containerRecord(c.Name)
	if m.starting || s.mayRun(c.Name) || s.isUnshown(c.Name) {
		return
	}
	if s.now.Before(m.again) {
		s.callAgain(m.again)
		return
	}
	a := Action{Kind: Start, Container: c.Name, SandboxID: s.box.ID}
	if last := s.lastInstance(c.Name); last != nil {
		a.Attempt = last.Attempt + 1
		if last.State == Exited {
			if s.backOff(c, m, last) {
				return
			}
			a.backoff = m.backoff.nextBackoff(last.FinishedAt, Hash(c), s.now)
		}
	}
	if s.ready && !s.busy {
		s.addAction(a)
		s.busy = true
	}
}

// backOff reports whether a container waits after the end of an instance, and records one event about it.
func (s *starter) backOff(c *corev1.Container, m containerMemory, last *Container) bool {
	until := m.backoff.backoffEnd(last.FinishedAt, Hash(c))
	if !s.now.Before(until) {
		return false
	}
	s.callAgain(until)
	if m.said.Equal(until) {
		return true
	}
	pod := fmt.Sprintf("%s_%s(%s)", s.pod.Name, s.pod.Namespace, s.pod.UID)
	s.addAction(Action{
		Kind: BackOff, Container: c.Name, until: until,
		waiting: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", m.backoff.delay, c.Name, pod),
		Event:   &Event{corev1.EventTypeWarning, "BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s", c.Name, pod)},
	})
	return true
}

// isUnshown reports whether the runtime's state may lack the last started instance.
func (p *planner) isUnshown(name string) bool {
	m := p.mem.containerRecord(name)
	if m.id == "" || slices.ContainsFunc(p.byName[name], func(c Container) bool { return c.ID == m.id }) {
		return false
	}
	until := m.startedAt.Add(settleAfter)
	if !p.now.Before(until) {
		return false
	}
	p.callAgain(until)
	return true
}

// trimInstances removes unneeded instances: all dead instances but the newest ones, and instances that never started.
func (p *planner) trimInstances() {
	for _, name := range slices.Sorted(maps.Keys(p.byName)) {
		if p.mem.containerRecord(name).starting {
			continue
		}
		dead := 0
		for i := range p.byName[name] {
			c := &p.byName[name][i]
			switch {
			case c.State == Created && (i > 0 || len(p.byName[name]) > 1):
				p.removeInstance(c)
			case c.State == Exited:
				dead++
				if dead > keepDead && !c.FinishedAt.Equal(p.resetAt) {
					p.removeInstance(c)
				}
			}
		}
	}
}
