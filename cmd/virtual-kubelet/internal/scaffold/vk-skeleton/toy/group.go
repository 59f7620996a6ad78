// SPDX-License-Identifier: Apache-2.0

package toy

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"
)

const (
	// mostGroups is the maximum number of groups on a page.
	mostGroups = 50
	// keptFor is how long a stopped group stays in lists after its end.
	keptFor = time.Minute
)

// Server is the service. It outlives its providers.
type Server struct {
	// Work is the behaviour of containers and commands. It may be replaced before the first request.
	Work func(ctx context.Context, p Process) (exitCode int32)

	ctx    context.Context // ends every container
	routes http.ServeMux

	mu     sync.Mutex
	groups map[string]*group // guarded by mu; keyed by name
	runs   int               // guarded by mu
}

// group is a group, and its containers.
type group struct {
	name       string
	spec       Spec
	created    time.Time
	address    string
	ctx        context.Context // ends with the group
	kill       context.CancelFunc
	stop       chan struct{} // closed when the group is asked to stop
	ended      chan struct{} // closed when all containers have ended for good
	containers []*container

	// guarded by Server.mu
	deadline time.Time // of its end; zero without a stop request
	killer   *time.Timer
}

// New returns a service without groups. It ends with ctx.
func New(ctx context.Context) *Server {
	s := &Server{ctx: ctx, Work: runDemo, groups: map[string]*group{}}
	s.addRoutes()
	return s
}

// createGroup makes a group, or returns the existing one; same reports whether the existing group has the same spec.
func (s *Server) createGroup(name string, spec Spec) (shown Group, made, same bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.groups[name]; g != nil {
		return g.showGroup(), false, reflect.DeepEqual(g.spec, spec)
	}
	g := &group{
		name: name, spec: spec, created: time.Now(), stop: make(chan struct{}), ended: make(chan struct{}),
		address: fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)),
	}
	g.ctx, g.kill = context.WithCancel(s.ctx)
	s.groups[name] = g
	var living sync.WaitGroup
	for _, c := range spec.Containers {
		k := &container{server: s, group: g, spec: c, now: Container{Name: c.Name, Image: c.Image, State: stateCreating}}
		g.containers = append(g.containers, k)
		living.Go(k.runContainer)
	}
	go func() {
		living.Wait()
		s.endGroup(g)
	}()
	return g.showGroup(), true, true
}

// showGroup returns a group for a response. The caller holds Server.mu.
func (g *group) showGroup() Group {
	shown := Group{Name: g.name, Tags: g.spec.Tags, Created: g.created, Address: g.address}
	for _, k := range g.containers {
		shown.Containers = append(shown.Containers, k.now)
	}
	return shown
}

func (s *Server) findGroup(name string) (Group, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.groups[name]; g != nil {
		return g.showGroup(), true
	}
	return Group{}, false
}

// listAfter returns the selected groups after a name. If there are more, next is the last name of the page.
func (s *Server) listAfter(want func(tags map[string]string) bool, after string) (groups []Group, next string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	groups = []Group{}
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		if name <= after || !want(s.groups[name].spec.Tags) {
			continue
		}
		if len(groups) == mostGroups {
			return groups, groups[mostGroups-1].Name
		}
		groups = append(groups, s.groups[name].showGroup())
	}
	return groups, ""
}

// stop asks a group to stop, and ends it after the grace period. If stop is called again, the earliest end counts. A group that has ended is removed.
func (s *Server) stop(name string, grace time.Duration) (known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[name]
	if g == nil {
		return false
	}
	select {
	case <-g.ended:
		s.dropGroup(g)
		return true
	default:
	}
	deadline := time.Now().Add(grace)
	if grace <= 0 {
		g.kill() // first, so that no container ends by itself
	}
	switch {
	case g.deadline.IsZero():
		close(g.stop)
		g.killer = time.AfterFunc(grace, g.kill)
	case deadline.Before(g.deadline):
		g.killer.Reset(grace)
	default:
		return true
	}
	g.deadline = deadline
	return true
}

// endGroup records that a group has ended. A stopped group is removed after some time.
func (s *Server) endGroup(g *group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.kill()
	close(g.ended)
	if g.deadline.IsZero() {
		return
	}
	g.killer.Stop()
	time.AfterFunc(keptFor, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dropGroup(g)
	})
}

// dropGroup removes a group. The caller holds mu.
func (s *Server) dropGroup(g *group) {
	if g.killer != nil {
		g.killer.Stop()
	}
	if s.groups[g.name] == g {
		delete(s.groups, g.name)
	}
}

// findContainer returns a container of a group; or nil if there is none.
func (s *Server) findContainer(name, of string) *container {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.groups[name]; g != nil {
		for _, k := range g.containers {
			if k.spec.Name == of {
				return k
			}
		}
	}
	return nil
}
