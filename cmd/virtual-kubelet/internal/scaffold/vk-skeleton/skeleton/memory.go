// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/logs"
)

// memory is a service in this process: its containers are goroutines. It is what a new provider is tried and tested on, and outlives
// the providers on it, as a service does.
type memory struct {
	ctx context.Context // ends every container
	// work is what containers and commands do.
	work func(ctx context.Context, p process) (exitCode int32)

	mu     sync.Mutex
	groups []*memoryGroup // guarded by mu; the oldest first
	runs   int            // guarded by mu
	// Faults, for the contract.
	fault      error // guarded by mu; what every request is answered
	loseAnswer bool  // guarded by mu; of the next Create
}

// process is what a container, or a command in it, finds.
type process struct {
	Main           bool // false: a command of Exec
	Command, Env   []string
	Stdin          io.Reader // nil: none
	Stdout, Stderr io.Writer
	Stop           <-chan struct{} // closed when the group is asked to stop
	Listen         func(port int32) net.Listener
	Session        session
}

// memoryGroup is a group, and its containers.
type memoryGroup struct {
	spec       groupSpec
	created    time.Time
	ctx        context.Context // ends with the group
	kill       context.CancelFunc
	stop       chan struct{} // closed when it is asked to stop
	ended      chan struct{} // closed when all containers have ended for good
	containers []*memoryContainer

	// guarded by memory.mu
	deadline time.Time // of its end; the zero time: nobody asked for it
	killer   *time.Timer
	ports    map[int32]*port
}

func newMemory(ctx context.Context) *memory { return &memory{ctx: ctx, work: demo} }

// request begins each request: it locks, and returns the fault.
func (m *memory) request(ctx context.Context) (unlock func(), err error) {
	m.mu.Lock()
	if err := errors.Join(ctx.Err(), m.fault); err != nil {
		m.mu.Unlock()
		return nil, err
	}
	return m.mu.Unlock, nil
}

// find returns a group. mu is held.
func (m *memory) find(id string) (*memoryGroup, error) {
	for _, g := range m.groups {
		if g.spec.ID == types.UID(id) {
			return g, nil
		}
	}
	return nil, errdefs.NotFoundf("group %s does not exist", id)
}

// Create starts the containers of a group.
func (m *memory) Create(ctx context.Context, spec groupSpec) error {
	unlock, err := m.request(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := m.find(string(spec.ID)); err == nil {
		return nil
	}
	g := &memoryGroup{spec: spec, created: time.Now(), stop: make(chan struct{}), ended: make(chan struct{}), ports: map[int32]*port{}}
	g.ctx, g.kill = context.WithCancel(m.ctx)
	m.groups = append(m.groups, g)
	var living sync.WaitGroup
	for _, c := range spec.Want {
		k := &memoryContainer{memory: m, group: g, spec: c, now: container{Name: c.Name, Image: c.Image, State: stateCreating}}
		g.containers = append(g.containers, k)
		living.Go(k.live)
	}
	go func() {
		living.Wait()
		g.kill()
		close(g.ended)
	}()
	if m.loseAnswer {
		m.loseAnswer = false
		return errors.New("the connection was closed before the answer")
	}
	return nil
}

// List returns the groups of a node.
func (m *memory) List(ctx context.Context, node string) ([]group, error) {
	unlock, err := m.request(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var all []group
	for _, g := range m.groups {
		if g.spec.Node != node {
			continue
		}
		shown := group{groupSpec: g.spec, Created: g.created, Address: "127.0.0.1", Stopping: !g.deadline.IsZero()}
		for _, k := range g.containers {
			shown.Containers = append(shown.Containers, k.now)
		}
		all = append(all, shown)
	}
	return all, nil
}

// Stop asks a group to stop, and kills it at the end of the grace period.
func (m *memory) Stop(ctx context.Context, id string, grace time.Duration) error {
	unlock, err := m.request(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := m.find(id)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(grace)
	if grace <= 0 {
		g.kill() // first, so that nothing ends by itself
	}
	switch {
	case g.deadline.IsZero():
		close(g.stop)
		g.killer = time.AfterFunc(grace, g.kill)
	case deadline.Before(g.deadline):
		g.killer.Reset(grace)
	default:
		return nil
	}
	g.deadline = deadline
	return nil
}

// Remove takes a group out.
func (m *memory) Remove(ctx context.Context, id string) error {
	unlock, err := m.request(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := m.find(id)
	if err != nil {
		return err
	}
	select {
	case <-g.ended:
	default:
		return fmt.Errorf("group %s has not ended", id)
	}
	m.drop(g)
	return nil
}

// drop takes a group out. mu is held.
func (m *memory) drop(g *memoryGroup) {
	if g.killer != nil {
		g.killer.Stop()
	}
	for i := range m.groups {
		if m.groups[i] == g {
			m.groups = append(m.groups[:i:i], m.groups[i+1:]...)
			return
		}
	}
}

// Ping says whether there is a fault.
func (m *memory) Ping(ctx context.Context) error {
	unlock, err := m.request(ctx)
	if err != nil {
		return err
	}
	unlock()
	return nil
}

// Logs returns the log of a container.
func (m *memory) Logs(ctx context.Context, id, name string, previous bool) (logs.Source, error) {
	k, err := m.container(ctx, id, name)
	if err != nil {
		return nil, err
	}
	return k.logs(previous)
}

// container returns a container of a group.
func (m *memory) container(ctx context.Context, id, name string) (*memoryContainer, error) {
	unlock, err := m.request(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	g, err := m.find(id)
	if err != nil {
		return nil, err
	}
	for _, k := range g.containers {
		if k.spec.Name == name {
			return k, nil
		}
	}
	return nil, errdefs.NotFoundf("group %s has no container %q", id, name)
}
