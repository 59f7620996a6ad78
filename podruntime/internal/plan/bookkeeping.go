// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Begin records the beginning of an action. Call it before the action begins.
func (m *Memory) Begin(a Action, now time.Time) {
	switch a.Kind {
	case SetupVolumes:
		m.volumes.beginTry()
	case Finish:
		m.finish.beginTry()
	case RunSandbox:
		m.sandbox.beginTry()
	case StopSandbox:
		entryOf(&m.sandboxes, a.ID).stop.beginTry()
	case RemoveSandbox:
		entryOf(&m.sandboxes, a.ID).remove.beginTry()
	case Start, CancelStart, BackOff:
		m.beginContainer(entryOf(&m.containers, a.Container), a)
	default:
		m.beginInstance(entryOf(&m.instances, a.ID), a)
	}
}

func (m *Memory) beginContainer(c *containerMemory, a Action) {
	switch a.Kind {
	case Start:
		c.starting, c.cancelled = true, false
		c.backoff = a.backoff
	case CancelStart:
		c.cancelled = true
	case BackOff:
		c.said = a.until
		c.waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: a.waiting}
	}
}

func (m *Memory) beginInstance(i *instanceMemory, a Action) {
	switch a.Kind {
	case Kill:
		i.kill, i.restart, i.killBy = true, a.restart, a.until
	case PreStop:
		i.hook.beginTry()
	case Stop:
		i.stops++
		i.stopBy = a.until
	case Resize:
		i.resize.beginTry()
	case RemoveContainer:
		i.remove.beginTry()
	}
}

// End records the outcome of an action after its Begin. It does nothing for actions that end at once.
func (m *Memory) End(a Action, o Outcome, now time.Time) {
	switch a.Kind {
	case SetupVolumes:
		m.ready = m.volumes.endTry(o, now)
	case Finish:
		m.finished = m.finish.endTry(o, now)
	case RunSandbox:
		if m.sandbox.endTry(o, now) {
			m.sandbox.again = now.Add(retryFirst) // a sandbox that fails at once must not be replaced immediately
		}
		m.sandboxID, m.sandboxAt = o.ID, now
	case StopSandbox:
		s := entryOf(&m.sandboxes, a.ID)
		s.stopped = s.stop.endTry(o, now)
	case RemoveSandbox:
		if entryOf(&m.sandboxes, a.ID).remove.endTry(o, now) {
			m.forgetSandbox(a.ID)
		}
	case Start:
		m.endStart(entryOf(&m.containers, a.Container), o, now)
	case PreStop, Stop, Resize, RemoveContainer:
		m.endInstance(entryOf(&m.instances, a.ID), a, o, now)
	}
}

func (m *Memory) endStart(c *containerMemory, o Outcome, now time.Time) {
	c.starting = false
	if o.ID != "" {
		c.id, c.startedAt = o.ID, now
	}
	if o.Reason == "" {
		c.waiting, c.again = nil, time.Time{}
		return
	}
	c.waiting = &corev1.ContainerStateWaiting{Reason: o.Reason, Message: o.Message}
	c.again = now.Add(retryStart)
	if o.RetryAfter > 0 {
		c.again = now.Add(o.RetryAfter)
	}
	if o.Reason == reasonPostStart && o.ID != "" {
		c.again = time.Time{} // the container ran, so the end of the instance determines the next start
		entryOf(&m.instances, o.ID).failed = true
	}
}

func (m *Memory) endInstance(i *instanceMemory, a Action, o Outcome, now time.Time) {
	switch a.Kind {
	case PreStop:
		i.hook.busy, i.hookDone = false, true // a failed hook is not retried
	case Stop:
		i.stops--
		if i.stop.endTry(o, now) {
			i.stopped, i.stopEnd = true, now
		}
	case Resize:
		if i.resize.endTry(o, now) {
			i.resized = a.Resources
		}
	case RemoveContainer:
		if i.remove.endTry(o, now) {
			m.forgetInstance(a.Container, a.ID)
		}
	}
}

func (m *Memory) forgetSandbox(id string) {
	delete(m.sandboxes, id)
	if m.sandboxID == id {
		m.sandboxID = ""
	}
}

// forgetInstance forgets a removed instance.
func (m *Memory) forgetInstance(name, id string) {
	delete(m.instances, id)
	if c := m.containers[name]; c != nil && c.id == id {
		c.id = ""
	}
}
