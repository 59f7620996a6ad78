// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podjob

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// maxBehind is the largest allowed lag of an attached reader behind the container, in bytes.
const maxBehind = 1 << 20

// errBehind ends an attach whose reader is too slow, because the container never waits for a reader.
var errBehind = errors.New("attach: its reader is more than 1 MiB behind the container: attach again")

// viewer buffers the unread output of a container for one attached reader.
type viewer struct {
	more   chan struct{} // there may be new output
	behind chan struct{} // closed when it is too far behind

	mu    sync.Mutex
	parts []part // guarded by mu
	size  int    // guarded by mu: of parts, including the parts that are being written
}

type part struct {
	data   []byte
	stderr bool
}

func newViewer() *viewer { return &viewer{more: make(chan struct{}, 1), behind: make(chan struct{})} }

// add adds output to the buffer. It never waits.
func (v *viewer) add(b []byte, stderr bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.size > maxBehind {
		return
	}
	if v.size += len(b); v.size > maxBehind {
		v.parts = nil
		close(v.behind)
		return
	}
	v.parts = append(v.parts, part{slices.Clone(b), stderr})
	select {
	case v.more <- struct{}{}:
	default:
	}
}

// take returns the new output. written is how much of the previous output has been sent.
func (v *viewer) take(written int) []part {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.size <= maxBehind {
		v.size -= written
	}
	parts := v.parts
	v.parts = nil
	return parts
}

// copy writes all output until ended is closed, and the remaining output at that time.
func (v *viewer) copy(ctx context.Context, stdout, stderr io.Writer, ended <-chan struct{}) error {
	written := 0
	for {
		over := false
		select {
		case <-ended: // before the buffer is read, so that it has all output
			over = true
		default:
		}
		parts := v.take(written)
		written = 0
		for _, p := range parts {
			written += len(p.data)
			to := stdout
			if p.stderr {
				to = stderr
			}
			if to == nil {
				continue
			}
			if _, err := to.Write(p.data); err != nil {
				return err
			}
		}
		if over {
			return nil
		}
		if len(parts) > 0 {
			continue
		}
		select {
		case <-v.more:
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// StreamAttach shows the container's output until the container has ended.
func (r *runtime) StreamAttach(ctx context.Context, id string, attach api.AttachIO) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	var stdout, stderr io.Writer
	if out := attach.Stdout(); out != nil {
		stdout = out
	}
	if errs := attach.Stderr(); errs != nil {
		stderr = errs
	}
	v := newViewer()
	c.mu.Lock()
	c.viewers[v] = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.viewers, v)
		c.mu.Unlock()
	}()
	copied := make(chan error, 1)
	go func() { copied <- v.copy(ctx, stdout, stderr, c.ended) }() // a blocked write ends with its session
	select {
	case err := <-copied:
		return err
	case <-v.behind:
		return errBehind
	case <-ctx.Done():
		return ctx.Err()
	}
}
