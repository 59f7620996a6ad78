// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"sync"
)

// turns serialize pulls of the same name with the same credentials. Other pulls do not wait, so a hanging
// registry does not block them.
type turns struct {
	mu   sync.Mutex
	busy map[turn]*waiting // guarded by mu
}

// turn identifies the pulls that wait for each other.
type turn struct {
	ref   string
	auth  Auth
	local bool
}

type waiting struct {
	token chan struct{}
	users int // guarded by turns.mu: callers that work or wait
}

// takeTurn waits for the turn. The caller must call done at the end.
func (t *turns) takeTurn(ctx context.Context, what turn) (done func(), err error) {
	t.mu.Lock()
	if t.busy == nil {
		t.busy = map[turn]*waiting{}
	}
	w := t.busy[what]
	if w == nil {
		w = &waiting{token: make(chan struct{}, 1)}
		t.busy[what] = w
	}
	w.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if w.users--; w.users == 0 {
			delete(t.busy, what)
		}
	}
	select {
	case w.token <- struct{}{}:
		return func() { <-w.token; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
