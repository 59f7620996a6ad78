// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"
)

var (
	errUnconfigured = errors.New("the network has no configuration yet")
	errLimit        = errors.New("the pod has reached a limit of its network")
	errEnded        = errors.New("the pod has been detached")
)

// pod is an attached pod.
type pod struct {
	network *Network
	name    string
	address address
	nic     *nic

	connections, halfOpen, flows, queries counter
	files, memory                         allowance

	ctx    context.Context // canceled when the pod is detached
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu sync.Mutex
	// The following are guarded by mu.
	ended     bool
	listeners []io.Closer
}

func newPod(n *Network, spec Pod, card *nic) *pod {
	p := &pod{network: n, name: spec.Name, address: spec.Address.As4(), nic: card}
	p.connections.limit, p.halfOpen.limit, p.flows.limit, p.queries.limit = maxConnections, maxHalfOpen, maxFlows, maxQueries
	p.files = allowance{of: &n.files, limit: math.MaxInt}
	p.memory = allowance{of: &n.memory, limit: maxPodMemory}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// startTasks starts the goroutines that forward packets.
func (p *pod) startTasks() {
	p.spawnTask(func() { p.nic.receivePackets(p.routePacket) })
	p.spawnTask(func() { p.nic.sendQueued(p.ctx.Done()) })
}

// spawnTask runs a task in a goroutine, unless the pod has been detached.
func (p *pod) spawnTask(task func()) bool {
	if !p.enterTask() {
		return false
	}
	go func() {
		defer p.tasks.Done()
		task()
	}()
	return true
}

// enterTask registers the caller as a task of the pod. The caller calls tasks.Done at the end of the task.
func (p *pod) enterTask() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	p.tasks.Add(1)
	return true
}

// endTasks ends all tasks of the pod, and waits for them.
func (p *pod) endTasks() {
	p.mu.Lock()
	p.ended = true
	listeners := p.listeners
	p.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close()
	}
	p.cancel()
	p.nic.close()
	p.tasks.Wait()
}

// slot is the share of a pod's allowances that a connection or a flow holds.
type slot struct {
	pod     *pod
	counter *counter
	share   int
}

// The minimum and the maximum size of the buffers of one connection.
const (
	minShare = 16 << 10
	maxShare = 8 << 20
)

// takeSlot takes a slot with one descriptor, and memory for buffers.
func (p *pod) takeSlot(c *counter, least, most int) (*slot, error) {
	if !c.takeOne() {
		return nil, errLimit
	}
	if !p.files.takeUnits(1) {
		c.returnOne()
		return nil, errFiles
	}
	share := p.memory.takeShare(least, most)
	if share == 0 {
		p.files.returnUnits(1)
		c.returnOne()
		return nil, errLimit
	}
	return &slot{p, c, share}, nil
}

func (s *slot) releaseSlot() {
	s.counter.returnOne()
	s.pod.files.returnUnits(1)
	s.pod.memory.returnUnits(s.share)
}
