// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Stale freezes lists in their present state, until it is called with false.
func (s *Server) Stale(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = nil
	if on {
		all := s.sortTasks()
		s.stale = &all
	}
}

// Running returns the IDs of the tasks with a tag that have not stopped.
func (s *Server) Running(key, value string) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.order {
		t := s.tasks[id]
		s.settleTask(t)
		if !t.stopped.IsZero() {
			continue
		}
		for _, tag := range t.tags {
			if m, ok := tag.(map[string]any); ok && m["key"] == key && m["value"] == value {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// Lose makes a task vanish without a trace.
func (s *Server) Lose(id string) error {
	s.mu.Lock()
	t := s.tasks[id]
	if t == nil {
		s.mu.Unlock()
		return errdefs.NotFoundf("there is no task %s", id)
	}
	s.dropTask(t)
	s.mu.Unlock()
	return s.fleet.Stop(s.ctx, id, 0)
}

// Interrupt removes the capacity of a task, as Fargate Spot does.
func (s *Server) Interrupt(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tasks[id]; t != nil {
		s.haltTask(t, "SpotInterruption", "Your Spot Task was interrupted.")
		s.sendState(t)
	}
}

// Definitions returns the number of revisions of task definitions.
func (s *Server) Definitions() (n int) { return len(s.Left()["definitions"]) }

// Left returns the leftovers of clients at the server, by kind, for tests: tasks that have not stopped,
// revisions of definitions that are not deleted, secrets that are not scheduled for deletion, streams of logs,
// and sessions.
func (s *Server) Left() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := map[string][]string{}
	add := func(kind, name string) { left[kind] = append(left[kind], name) }
	for id, t := range s.tasks {
		if s.settleTask(t); t.stopped.IsZero() {
			add("tasks", id)
		}
	}
	s.purgeDefinitions()
	for _, revisions := range s.definitions {
		for _, d := range revisions {
			if d != nil {
				add("definitions", d.arn[strings.LastIndex(d.arn, "/")+1:])
			}
		}
	}
	for name, one := range s.secrets {
		if !one.leaving {
			add("secrets", name)
		}
	}
	for name := range s.streams {
		add("log streams", name)
	}
	for id := range s.sessions {
		add("sessions", id)
	}
	return left
}
