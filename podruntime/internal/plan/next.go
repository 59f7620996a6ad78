// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// minGrace is the minimum grace period of every container.
const minGrace = 2 * time.Second

// Next decides the next actions for the pod. The pod has the last known status, from the API server or as
// reported to it. Next changes nothing.
func Next(pod *corev1.Pod, seen Observed, mem *Memory, now time.Time) Plan {
	p := &planner{View: Look(pod, seen, mem, now)}
	if p.mustEnd() {
		p.endPod()
	} else {
		p.trimInstances()
		p.keepPod()
	}
	return p.plan
}

type planner struct {
	*View
	plan Plan
}

func (p *planner) addAction(a Action) { p.plan.Actions = append(p.plan.Actions, a) }

// callAgain requests another call of Next at until, or earlier.
func (p *planner) callAgain(until time.Time) {
	if p.plan.Again.IsZero() || until.Before(p.plan.Again) {
		p.plan.Again = until
	}
}

// mustEnd reports whether the pod must end, or has ended.
func (p *planner) mustEnd() bool {
	if p.mem.finished || p.mem.deletion != nil {
		return true
	}
	if phase := p.pod.Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		return true
	}
	if _, _, evicted := p.Evicted(); evicted {
		return true
	}
	if by, has := podDeadline(p.pod, p.mem); has {
		p.callAgain(by)
	}
	return p.hasEnded()
}

// hasEnded reports whether the pod has ended by itself.
func (p *planner) hasEnded() bool {
	if p.initFailed() {
		return true
	}
	for i := range p.pod.Spec.Containers {
		c := &p.pod.Spec.Containers[i]
		last := p.lastInstance(c.Name)
		if p.mem.containerRecord(c.Name).starting || last == nil || last.State != Exited || p.Restarts(c, last) {
			return false
		}
	}
	return len(p.pod.Spec.Containers) > 0
}

// initFailed reports whether an init container has failed for good.
func (p *planner) initFailed() bool {
	if p.Initialized() {
		return false
	}
	inits := p.pod.Spec.InitContainers
	for i := range inits {
		c := &inits[i]
		last := p.activeInstance(c.Name)
		if i != p.lastInit() || Sidecar(c) || last == nil || p.mem.containerRecord(c.Name).starting {
			continue
		}
		if last.State == Exited && last.ExitCode != 0 && !p.Restarts(c, last) {
			return true
		}
	}
	return false
}

// lastInit returns the index of the last created init container, or -1. The init containers before it are done.
func (p *planner) lastInit() int {
	for i := len(p.pod.Spec.InitContainers) - 1; i >= 0; i-- {
		if p.activeInstance(p.pod.Spec.InitContainers[i].Name) != nil {
			return i
		}
	}
	return -1
}

// keepPod keeps a pod in its desired state.
func (p *planner) keepPod() {
	alive := p.killOld()
	volumes := p.setupVolumes()
	box, _ := p.Sandbox()
	if box == nil {
		if !alive && volumes {
			p.renewSandbox()
		}
		return
	}
	p.retireSandboxes(box)
	if p.awaitsReset() {
		return
	}
	p.keepContainers(box, volumes)
}

// awaitsReset reports whether instances are still running before a restart of all containers.
func (p *planner) awaitsReset() bool {
	for c := range ordinaryContainers(p.pod) {
		if list := p.byName[c.Name]; len(list) > 0 && p.needsReset(&list[0]) && p.mayRun(c.Name) {
			return true
		}
	}
	return false
}

// setupVolumes reports whether the volumes are set up.
func (p *planner) setupVolumes() bool {
	if !p.mem.ready && p.mem.volumes.isDue(p) {
		p.addAction(Action{Kind: SetupVolumes})
	}
	return p.mem.ready
}

// killOld kills instances that the pod no longer has, and reports whether there are any.
func (p *planner) killOld() (alive bool) {
	box, _ := p.Sandbox()
	for c := range p.aliveInstances() {
		switch {
		case box == nil || c.SandboxID != box.ID:
			p.killInstance(c, kill{grace: podGrace(p.pod)}, true)
		case p.needsReset(c) && !isEphemeral(p.pod, c.Name):
			p.killInstance(c, kill{message: "killing"}, true)
		case c.State == Unknown:
			p.killInstance(c, kill{grace: podGrace(p.pod), message: `Container is in "unknown" state, try killing it before restart`}, true)
		case c.ID != p.byName[c.Name][0].ID:
			p.killInstance(c, kill{grace: podGrace(p.pod)}, true)
		default:
			continue
		}
		alive = true
	}
	return alive
}
