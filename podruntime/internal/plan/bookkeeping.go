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
		m.volumes.begin()
	case Finish:
		m.finish.begin()
	case RunSandbox:
		m.sandbox.begin()
	case StopSandbox:
		put(&m.sandboxes, a.ID).stop.begin()
	case RemoveSandbox:
		put(&m.sandboxes, a.ID).remove.begin()
	case Start, CancelStart, BackOff:
		m.beginContainer(put(&m.containers, a.Container), a)
	default:
		m.beginInstance(put(&m.instances, a.ID), a)
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
		i.hook.begin()
	case Stop:
		i.stops++
		i.stopBy = a.until
	case Resize:
		i.resize.begin()
	case RemoveContainer:
		i.remove.begin()
	}
}

// End records the outcome of an action after its Begin. It does nothing for actions that end at once.
func (m *Memory) End(a Action, o Outcome, now time.Time) {
	switch a.Kind {
	case SetupVolumes:
		m.ready = m.volumes.end(o, now)
	case Finish:
		m.finished = m.finish.end(o, now)
	case RunSandbox:
		if m.sandbox.end(o, now) {
			m.sandbox.again = now.Add(retryFirst) // a sandbox that fails at once must not be replaced without a pause
		}
		m.sandboxID, m.sandboxAt = o.ID, now
	case StopSandbox:
		s := put(&m.sandboxes, a.ID)
		s.stopped = s.stop.end(o, now)
	case RemoveSandbox:
		if put(&m.sandboxes, a.ID).remove.end(o, now) {
			m.forgetSandbox(a.ID)
		}
	case Start:
		m.endStart(put(&m.containers, a.Container), o, now)
	case PreStop, Stop, Resize, RemoveContainer:
		m.endInstance(put(&m.instances, a.ID), a, o, now)
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
		c.again = time.Time{} // the container ran: the end of the instance decides
		put(&m.instances, o.ID).failed = true
	}
}

func (m *Memory) endInstance(i *instanceMemory, a Action, o Outcome, now time.Time) {
	switch a.Kind {
	case PreStop:
		i.hook.busy, i.hookDone = false, true // a failed hook is not tried again
	case Stop:
		i.stops--
		if i.stop.end(o, now) {
			i.stopped, i.stopEnd = true, now
		}
	case Resize:
		if i.resize.end(o, now) {
			i.resized = a.Resources
		}
	case RemoveContainer:
		if i.remove.end(o, now) {
			m.forget(a.Container, a.ID)
		}
	}
}

func (m *Memory) forgetSandbox(id string) {
	delete(m.sandboxes, id)
	if m.sandboxID == id {
		m.sandboxID = ""
	}
}

// forget forgets a removed instance.
func (m *Memory) forget(name, id string) {
	delete(m.instances, id)
	if c := m.containers[name]; c != nil && c.id == id {
		c.id = ""
	}
}
