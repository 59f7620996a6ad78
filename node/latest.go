// SPDX-License-Identifier: Apache-2.0

package node

import "sync"

// latest passes values from any goroutine to the goroutine that acts on them. put never waits; a newer value replaces an older one.
type latest[T any] struct {
	// wake receives when a value is available. It may receive once more after the value was taken; take then returns false.
	wake chan struct{}

	mu    sync.Mutex
	value *T // guarded by mu; nil when nothing waits
}

func newLatest[T any]() *latest[T] {
	return &latest[T]{wake: make(chan struct{}, 1)}
}

func (l *latest[T]) put(value T) {
	l.mu.Lock()
	l.value = &value
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *latest[T]) take() (value T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.value == nil {
		return value, false
	}
	value, l.value = *l.value, nil
	return value, true
}

// leaveToken leaves a token in a channel of capacity 1.
func leaveToken(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
