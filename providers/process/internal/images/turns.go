// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"sync"
)

// turns allow one caller at a time for the same work: the same name, with the same credentials. Other work does
// not wait: a hanging registry would stop it.
type turns struct {
	mu   sync.Mutex
	busy map[turn]*waiting // guarded by mu
}

// turn identifies a piece of work.
type turn struct {
	ref   string
	auth  Auth
	local bool
}

type waiting struct {
	token chan struct{}
	users int // guarded by the mu of its turns: working and waiting callers
}

// takeTurn waits for the turn. done must be called then.
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
