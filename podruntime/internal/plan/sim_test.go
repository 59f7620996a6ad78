// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/podstatus"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// life describes the behaviour of an instance of a container.
type life struct {
	pull   time.Duration // until it runs
	reason string        // the reason of a failed start; "": the start succeeds
	hook   time.Duration // duration of the postStart hook
	hookNo bool          // the hook fails
	runs   time.Duration // until it exits by itself; 0: for ever
	code   int32
	stops  time.Duration // duration of a stop; if it exceeds the grace period, the instance is killed
	pre    time.Duration // duration of the preStop hook
}

// op is an action in progress.
type op struct {
	action plan.Action
	at     time.Time
	do     func()
}

// tb has the methods that a test and a property share.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// sim is a runtime and a worker in fake time, with a log of the events.
type sim struct {
	t      tb
	pod    *corev1.Pod
	mem    plan.Memory
	now    time.Time
	boxes  []plan.Sandbox
	list   []plan.Container
	ops    []op
	lives  map[string][]life // by container, one per attempt; the last one applies to all later attempts
	exits  map[string]time.Time
	made   int
	log    []string
	starts []string // the instances that ran
	gone   bool
	check  func(plan.Plan)
	once   map[string]bool // containers whose failing start fails only once
}

func newSim(t tb, pod *corev1.Pod) *sim {
	return &sim{t: t, pod: pod, now: epoch, lives: map[string][]life{}, exits: map[string]time.Time{}, mem: plan.Memory{StartTime: epoch, Probes: map[string]plan.Probe{}}}
}

func (s *sim) tell(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf("%v ", s.now.Sub(epoch))+fmt.Sprintf(format, args...))
}

func (s *sim) seen() plan.Observed {
	return plan.Observed{Runtime: "sim", HostIPs: []string{"10.0.0.1"}, Sandboxes: slices.Clone(s.boxes), Containers: slices.Clone(s.list)}
}

func (s *sim) life(name string, attempt uint32) life {
	lives := s.lives[name]
	if len(lives) == 0 {
		return life{}
	}
	return lives[min(int(attempt), len(lives)-1)]
}

// run lets the time d pass.
func (s *sim) run(d time.Duration) {
	s.t.Helper()
	end := s.now.Add(d)
	for steps := 0; ; steps++ {
		if steps > 20000 {
			s.t.Fatalf("no end of it:\n%s", strings.Join(s.log[len(s.log)-50:], "\n"))
		}
		again := s.settle()
		next := end
		for _, o := range s.ops {
			next = earlier(next, o.at)
		}
		for _, at := range s.exits {
			next = earlier(next, at)
		}
		if !again.IsZero() && again.After(s.now) {
			next = earlier(next, again)
		}
		if s.now = next; !s.now.Before(end) {
			return
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// settle does all work that is due, until no work is due.
func (s *sim) settle() time.Time {
	for range 1000 {
		s.happen()
		s.pod.Status = podstatus.Status(s.pod, s.seen(), &s.mem, s.now)
		p := plan.Next(s.pod, s.seen(), &s.mem, s.now)
		if s.check != nil {
			s.check(p)
		}
		s.gone = p.Gone
		for _, a := range p.Actions {
			s.begin(a)
		}
		if len(p.Actions) == 0 && !s.due() {
			if !p.Again.IsZero() && !p.Again.After(s.now) {
				s.t.Fatalf("look again at %v, which is now", p.Again)
			}
			return p.Again
		}
	}
	s.t.Fatalf("it does not settle:\n%s", strings.Join(s.log[max(0, len(s.log)-20):], "\n"))
	return time.Time{}
}

func (s *sim) due() bool {
	for _, at := range s.exits {
		if !at.After(s.now) {
			return true
		}
	}
	return slices.ContainsFunc(s.ops, func(o op) bool { return !o.at.After(s.now) })
}

// happen performs the due exits and ends of actions.
func (s *sim) happen() {
	for i := range s.list {
		c := &s.list[i]
		if at, has := s.exits[c.ID]; has && !at.After(s.now) {
			s.exit(c, s.life(c.Name, c.Attempt).code)
		}
	}
	for i := 0; i < len(s.ops); {
		if o := s.ops[i]; !o.at.After(s.now) {
			s.ops = slices.Delete(s.ops, i, i+1)
			o.do()
			i = 0
			continue
		}
		i++
	}
}

func (s *sim) exit(c *plan.Container, code int32) {
	delete(s.exits, c.ID)
	if c.State != plan.Running {
		return
	}
	c.State, c.ExitCode, c.FinishedAt = plan.Exited, code, s.now
	s.tell("%s exits %d", c.ID, code)
}

func (s *sim) find(id string) *plan.Container {
	for i := range s.list {
		if s.list[i].ID == id {
			return &s.list[i]
		}
	}
	return nil
}

func (s *sim) later(a plan.Action, d time.Duration, do func()) {
	s.ops = append(s.ops, op{a, s.now.Add(d), do})
}

func (s *sim) begin(a plan.Action) {
	s.mem.Begin(a, s.now)
	text := a.Kind.String()
	switch a.Kind {
	case plan.Start:
		text += fmt.Sprintf(" %s-%d", a.Container, a.Attempt)
	case plan.RunSandbox:
		text += fmt.Sprintf(" %d", a.Attempt)
	case plan.CancelStart, plan.BackOff:
		text += " " + a.Container
	case plan.Stop, plan.PreStop:
		text += fmt.Sprintf(" %s %v", a.ID, a.Grace)
	default:
		if a.ID != "" {
			text += " " + a.ID
		}
	}
	if a.Event != nil {
		text += fmt.Sprintf(" (%s: %s)", a.Event.Reason, a.Event.Message)
	}
	s.tell("%s", text)
	s.perform(a)
}

// want compares the log with the lines. A line may omit words at its end.
func (s *sim) want(lines string) {
	s.t.Helper()
	var want []string
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" {
			want = append(want, line)
		}
	}
	same := len(want) == len(s.log)
	for i := range min(len(want), len(s.log)) {
		same = same && strings.HasPrefix(s.log[i], want[i])
	}
	if !same {
		s.t.Errorf("got:\n\t%s\nwant:\n\t%s", strings.Join(s.log, "\n\t"), strings.Join(want, "\n\t"))
	}
	s.log = nil
}

// up lets the pod start, and clears the log.
func (s *sim) up() *sim {
	s.run(time.Second)
	s.log = nil
	return s
}
