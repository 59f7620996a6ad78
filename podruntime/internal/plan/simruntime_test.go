// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

// perform executes an action, like a runtime.
func (s *sim) perform(a plan.Action) {
	end := func(o plan.Outcome) func() { return func() { s.mem.End(a, o, s.now) } }
	switch a.Kind {
	case plan.RunSandbox:
		s.made++
		box := plan.Sandbox{ID: fmt.Sprintf("box-%d", a.Attempt), Attempt: a.Attempt, Ready: true, CreatedAt: s.now, IPs: []string{"10.1.0.1"}}
		s.later(a, 0, func() { s.boxes = append(s.boxes, box); end(plan.Outcome{ID: box.ID})() })
	case plan.StopSandbox:
		s.later(a, 0, func() { s.killBox(a.ID); end(plan.Outcome{})() })
	case plan.RemoveSandbox:
		s.boxes = slices.DeleteFunc(s.boxes, func(b plan.Sandbox) bool { return b.ID == a.ID })
		s.later(a, 0, end(plan.Outcome{}))
	case plan.Start:
		s.start(a)
	case plan.PreStop:
		c := s.find(a.ID)
		s.later(a, min(a.Grace, s.life(c.Name, c.Attempt).pre), end(plan.Outcome{}))
	case plan.Stop:
		s.stop(a)
	case plan.RemoveContainer:
		if c := s.find(a.ID); c != nil && c.State == plan.Running {
			s.t.Fatalf("%s is removed while it runs", a.ID)
		}
		s.list = slices.DeleteFunc(s.list, func(c plan.Container) bool { return c.ID == a.ID })
		s.later(a, 0, end(plan.Outcome{}))
	case plan.Kill, plan.BackOff:
	case plan.CancelStart:
		for i := range s.ops {
			if o := &s.ops[i]; o.action.Kind == plan.Start && o.action.Container == a.Container {
				o.at = s.now
			}
		}
	default:
		s.later(a, 0, end(plan.Outcome{}))
	}
}

// killBox stops a sandbox and all its containers.
func (s *sim) killBox(id string) {
	for i := range s.boxes {
		if s.boxes[i].ID == id {
			s.boxes[i].Ready = false
		}
	}
	for i := range s.list {
		if c := &s.list[i]; c.SandboxID == id {
			s.exit(c, 137)
		}
	}
}

func (s *sim) start(a plan.Action) {
	l := s.life(a.Container, a.Attempt)
	if key := fmt.Sprint(a.Container, a.Attempt); l.reason != "" && !s.once[key] {
		if s.once != nil {
			s.once[key] = true
		}
		s.later(a, l.pull, func() { s.mem.End(a, plan.Outcome{Reason: l.reason, Message: "no"}, s.now) })
		return
	}
	s.later(a, l.pull, func() {
		id := fmt.Sprintf("%s-%d", a.Container, a.Attempt)
		if s.find(id) != nil {
			s.t.Fatalf("two instances %s", id)
		}
		for i := range s.list {
			if c := &s.list[i]; c.Name == a.Container && c.State == plan.Running {
				s.t.Fatalf("%s is started while %s runs", id, c.ID)
			}
		}
		if !slices.ContainsFunc(s.boxes, func(b plan.Sandbox) bool { return b.ID == a.SandboxID && b.Ready }) {
			s.mem.End(a, plan.Outcome{Reason: "CreateContainerError", Message: "no sandbox"}, s.now)
			return
		}
		c := plan.Container{
			ID: id, Name: a.Container, Attempt: a.Attempt, SandboxID: a.SandboxID, State: plan.Running,
			CreatedAt: s.now, StartedAt: s.now, Hash: s.hash(a.Container), Created: s.resources(a.Container),
		}
		s.list = append(s.list, c)
		s.starts = append(s.starts, id)
		if l.runs > 0 {
			s.exits[id] = s.now.Add(l.runs)
		}
		s.later(a, l.hook, func() {
			o := plan.Outcome{ID: id}
			if l.hookNo {
				o.Reason, o.Message = "PostStartHookError", "no"
			}
			s.mem.End(a, o, s.now)
		})
	})
}

func (s *sim) spec(name string) *corev1.Container {
	for _, list := range [][]corev1.Container{s.pod.Spec.InitContainers, s.pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return &corev1.Container{Name: name}
}

func (s *sim) hash(name string) string { return plan.Hash(s.spec(name)) }

func (s *sim) resources(name string) *corev1.ResourceRequirements {
	return s.spec(name).Resources.DeepCopy()
}

func (s *sim) stop(a plan.Action) {
	c := s.find(a.ID)
	takes, code := s.life(c.Name, c.Attempt).stops, int32(143)
	if takes > a.Grace {
		takes, code = a.Grace, 137
	}
	s.later(a, takes, func() {
		if c := s.find(a.ID); c != nil {
			s.exit(c, code)
		}
		s.mem.End(a, plan.Outcome{}, s.now)
	})
}
