// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"errors"
	"sync"
	"sync/atomic"
)

// Limits of a pod.
const (
	maxConnections = 4096
	maxHalfOpen    = 256
	maxFlows       = 1024
	// maxQueries is the maximum number of unanswered DNS queries.
	maxQueries = 256
	// maxPodMemory limits the buffers of a pod's connections, beyond the minimum of each connection.
	maxPodMemory = 64 << 20
	// maxMemory is the same limit for all pods together.
	maxMemory = 512 << 20
)

// supply is a resource of the process that the pods share.
type supply struct {
	mu sync.Mutex
	// free is guarded by mu, like the fields of the allowances.
	free int
}

// allowance is the part of a supply that one pod uses. A pod can never use more than it leaves free, so one pod
// gets at most half of the supply, and two pods get a third each.
type allowance struct {
	of    *supply
	limit int
	used  int // guarded by of.mu
}

// takeUnits takes n units, or none. It reports whether it took them.
func (a *allowance) takeUnits(n int) bool {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if a.used+n > min(a.limit, a.of.free-n) {
		return false
	}
	a.used += n
	a.of.free -= n
	return true
}

// takeShare takes an eighth of the units that the pod may still take, at least least and at most most. It returns
// 0 if the pod may take less than least.
func (a *allowance) takeShare(least, most int) int {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	n := min(a.limit-a.used, (a.of.free-a.used)/2) / 8
	n = max(least, min(n, most))
	if a.used+n > a.of.free-n {
		return 0
	}
	a.used += n
	a.of.free -= n
	return n
}

func (a *allowance) returnUnits(n int) {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.used -= n
	a.of.free += n
}

// podFiles are the descriptors of a pod without connections: its network card and the connection of its supervisor.
const podFiles = 2

var errFiles = errors.New("the network process has no file descriptors left: raise its limit (ulimit -Hn)")

// reserveUnits takes n units for the process itself, or none. It reports whether it took them.
func (s *supply) reserveUnits(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free < n {
		return false
	}
	s.free -= n
	return true
}

func (s *supply) releaseUnits(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
}

// counter counts the resources of one kind that a pod holds.
type counter struct {
	limit int32
	n     atomic.Int32
}

func (c *counter) takeOne() bool {
	if c.n.Add(1) > c.limit {
		c.n.Add(-1)
		return false
	}
	return true
}

func (c *counter) returnOne() { c.n.Add(-1) }
