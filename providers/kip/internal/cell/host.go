// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// host implements podjob.Host with the agent.
type host struct{ *Agent }

var _ podjob.Host = host{}

// Claim implements podjob.Host. A restarted agent does not start its pod again, because the pod's work until then is unknown.
func (h host) Claim(context.Context) error {
	f, err := os.OpenFile(filepath.Join(h.config.Dir, claimFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return errors.New("it has started again, and its pod has ended with it")
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// Bundle implements podjob.Host.
func (h host) Bundle(context.Context) (podjob.Bundle, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bundle, nil
}

// WriteStatus implements podjob.Host.
func (h host) WriteStatus(_ context.Context, s podjob.Status) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.writeState(statusFile, s); err != nil {
		return fmt.Errorf("keep the status: %w", err)
	}
	h.state.Status = &s
	h.wakeWatchers()
	return nil
}

// StopOrder implements podjob.Host.
func (h host) StopOrder(context.Context) (*podjob.Stop, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stop, nil
}

// listener passes stream connections from the agent to the pod's process.
type listener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "streams", Net: "unix"} }
