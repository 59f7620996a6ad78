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

// maxBehind is how many bytes somebody who is attached may be behind the container.
const maxBehind = 1 << 20

// errBehind ends an attach that is further behind: the container waits for nobody.
var errBehind = errors.New("attach: its reader is more than 1 MiB behind the container: attach again")

// viewer has what a container wrote and somebody who is attached has yet to get.
type viewer struct {
	more   chan struct{} // there may be something new
	behind chan struct{} // closed when it is too far behind

	mu    sync.Mutex
	parts []part // guarded by mu
	size  int    // guarded by mu: of parts, and of those that are being written
}

type part struct {
	data   []byte
	stderr bool
}

func newViewer() *viewer { return &viewer{more: make(chan struct{}, 1), behind: make(chan struct{})} }

// add never waits.
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

// take returns what is new; written is how much of the last has been taken away.
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

// copy writes all that comes until ended, and what there was by then.
func (v *viewer) copy(ctx context.Context, stdout, stderr io.Writer, ended <-chan struct{}) error {
	written := 0
	for {
		over := false
		select {
		case <-ended: // before the look: what was written before it is there
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

// StreamAttach shows what the container writes until it has ended.
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
	go func() { copied <- v.copy(ctx, stdout, stderr, c.ended) }() // a write that hangs ends with its session
	select {
	case err := <-copied:
		return err
	case <-v.behind:
		return errBehind
	case <-ctx.Done():
		return ctx.Err()
	}
}
