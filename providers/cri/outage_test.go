// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cri

import (
	"context"
	"io"
	"net"
	"sync"
)

// relay is a proxy in front of a runtime's socket. It simulates an outage for a single provider.
type relay struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu    sync.Mutex
	down  bool                  // guarded by mu
	conns map[net.Conn]struct{} // guarded by mu: both ends of each connection
}

// newRelay listens at path and connects each caller to target.
func newRelay(ctx context.Context, path, target string) (*relay, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	r := &relay{listener: listener, target: target, conns: map[net.Conn]struct{}{}}
	r.running.Go(r.serve)
	return r, nil
}

func (r *relay) serve() {
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return // the listener is closed
		}
		r.running.Go(func() { r.pass(near) })
	}
}

// pass copies from a connection to the target and back until one of them closes.
func (r *relay) pass(near net.Conn) {
	defer r.close(near)
	if !r.open(near) {
		return
	}
	far, err := new(net.Dialer).DialContext(context.Background(), "unix", r.target)
	if err != nil {
		return
	}
	defer r.close(far)
	if !r.open(far) {
		return
	}
	var wait sync.WaitGroup
	for from, to := range map[net.Conn]net.Conn{near: far, far: near} {
		wait.Go(func() {
			_, _ = io.Copy(to, from) // ends when either connection ends
			from.Close()
			to.Close()
		})
	}
	wait.Wait()
}

// open records a connection, and reports whether the runtime is reachable.
func (r *relay) open(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.down {
		r.conns[c] = struct{}{}
	}
	return !r.down
}

func (r *relay) close(c net.Conn) {
	c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}

// outage closes all connections, and refuses new ones until it is called with false.
func (r *relay) outage(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = on
	for c := range r.conns {
		if on {
			c.Close()
		}
	}
}

// end closes the socket, and returns when all goroutines have ended.
func (r *relay) end() error {
	err := r.listener.Close()
	r.outage(true)
	r.running.Wait()
	return err
}
