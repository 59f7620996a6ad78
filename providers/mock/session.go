// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// errRunEnded is the error of a session whose container has ended.
var errRunEnded = errors.New("the container has ended")

// runSession calls do with a shell in a running container. The session ends with the container, as if killed, even
// while the shell waits.
func (p *provider) runSession(ctx context.Context, namespace, podName, containerName string, attach api.AttachIO, do func(*shell) error) error {
	ctx, end := context.WithCancelCause(ctx)
	sh, s, run, err := p.openShell(ctx, namespace, podName, containerName, attach)
	if err != nil {
		end(nil)
		return err
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		if p.awaitEnd(ctx, s, run) {
			end(errRunEnded)
		}
	})
	err = do(sh)
	end(nil) // without effect if the container ended first
	watching.Wait()
	if errors.Is(context.Cause(ctx), errRunEnded) {
		return errRunEnded
	}
	return err
}

// awaitEnd returns true when a run of the containers of a pod has ended, false when ctx ends before it.
func (p *provider) awaitEnd(ctx context.Context, s *simulated, run int32) bool {
	for {
		p.mu.Lock()
		now := time.Now()
		m := s.life.momentAt(now)
		if s.asked == nil {
			s.asked = make(chan struct{})
		}
		asked := s.asked
		p.mu.Unlock()
		if m.stage != running || m.run != run {
			return true
		}
		var changes <-chan time.Time
		if !m.next.IsZero() {
			changes = time.After(m.next.Sub(now))
		}
		select {
		case <-changes:
		case <-asked:
		case <-ctx.Done():
			return false
		}
	}
}

// input is the input of a session. Read returns when ctx ends, and abandons its read of in. The caller closes in
// after the session has returned.
type input struct {
	ctx context.Context
	in  io.Reader
}

// Read reads, or returns io.EOF when ctx has ended.
func (i input) Read(b []byte) (int, error) {
	type result struct {
		data []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		data := make([]byte, len(b))
		n, err := i.in.Read(data)
		read <- result{data[:n], err}
	}()
	select {
	case r := <-read:
		return copy(b, r.data), r.err
	case <-i.ctx.Done():
		return 0, io.EOF
	}
}
