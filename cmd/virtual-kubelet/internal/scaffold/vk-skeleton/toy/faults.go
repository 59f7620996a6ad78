// SPDX-License-Identifier: Apache-2.0

package toy

// The methods below cause faults and other events of a service for the contract tests. They select a group by one of its tags.

// Running returns the number of groups with a tag and a running container.
func (s *Server) Running(key, value string) (n int) {
	s.changeGroups(key, value, func(g *group) {
		for _, k := range g.containers {
			if k.now.State == stateRunning {
				n++
				return
			}
		}
	})
	return n
}

// Kill ends a container with SIGKILL.
func (s *Server) Kill(key, value, name string) {
	s.changeGroups(key, value, func(g *group) {
		for _, k := range g.containers {
			if k.spec.Name == name {
				k.kill()
			}
		}
	})
}

// Lose lets groups vanish.
func (s *Server) Lose(key, value string) {
	s.changeGroups(key, value, func(g *group) {
		g.kill()
		s.dropGroup(g)
	})
}

func (s *Server) changeGroups(key, value string, do func(*group)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		if g.spec.Tags[key] == value {
			do(g)
		}
	}
}
