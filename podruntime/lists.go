// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// listed is the part of a list for one pod: states by ID.
type listed struct {
	round           uint64
	namespace, name string
	sandboxes       map[string]runtimeapi.PodSandboxState
	containers      map[string]listedContainer
}

type listedContainer struct {
	sandbox string
	state   runtimeapi.ContainerState
}

func (l *listed) equals(o *listed) bool {
	return o != nil && maps.Equal(l.sandboxes, o.sandboxes) && maps.Equal(l.containers, o.containers)
}

// hasObjects reports whether the runtime has a sandbox or a container of the pod.
func (l *listed) hasObjects() bool { return l != nil && len(l.sandboxes)+len(l.containers) > 0 }

// lists is the progress of the lister: callers wait for its first list, and workers compare its rounds.
type lists struct {
	rounds  atomic.Uint64         // started lists
	first   chan struct{}         // closed by the lister after the first successful list
	failing atomic.Pointer[error] // why the last list failed; nil: the list succeeded
}

func newLists() *lists { return &lists{first: make(chan struct{})} }

// beginRound counts a list, and returns its number.
func (l *lists) beginRound() uint64 { return l.rounds.Add(1) }

// lastRound returns the number of the last started list.
func (l *lists) lastRound() uint64 { return l.rounds.Load() }

// recordError records the result of a list. Nil means success.
func (l *lists) recordError(err error) {
	if err != nil {
		l.failing.Store(&err)
		return
	}
	l.failing.Store(nil)
}

// lastError returns the error of the last list.
func (l *lists) lastError() error {
	if err := l.failing.Load(); err != nil {
		return *err
	}
	return nil
}

// admitCallers releases callers that wait for the first list, after the workers have its content.
func (l *lists) admitCallers() {
	select {
	case <-l.first:
	default:
		close(l.first)
	}
}

// awaitFirst waits until the pods of the runtime are known.
func (l *lists) awaitFirst(ctx context.Context) error {
	select {
	case <-l.first:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the container runtime has not told yet which pods it has: %w", ctx.Err())
	}
}
