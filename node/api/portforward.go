// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// PortForwardHandlerFunc connects stream with a port of a pod and returns when
// the connection has ended. It is called once per connection, so several calls for
// one client run at the same time. ctx ends when the client goes away. The
// client is shown the text of an error.
type PortForwardHandlerFunc func(ctx context.Context, namespace, pod string, port int32, stream io.ReadWriteCloser) error

// PortForwardHandlerConfig holds the time limits of port-forward.
type PortForwardHandlerConfig struct {
	// StreamIdleTimeout ends a connection on which nothing is sent for so long. Zero means 4 hours.
	StreamIdleTimeout time.Duration
	// StreamCreationTimeout limits how long the client may take to create the
	// second of the two streams of a forwarded connection. Zero means 30 seconds.
	StreamCreationTimeout time.Duration
}

// PortForwardHandlerOption changes a PortForwardHandlerConfig.
type PortForwardHandlerOption func(*PortForwardHandlerConfig)

// WithPortForwardStreamIdleTimeout sets StreamIdleTimeout.
func WithPortForwardStreamIdleTimeout(d time.Duration) PortForwardHandlerOption {
	return func(cfg *PortForwardHandlerConfig) { cfg.StreamIdleTimeout = d }
}

// WithPortForwardCreationTimeout sets StreamCreationTimeout.
func WithPortForwardCreationTimeout(d time.Duration) PortForwardHandlerOption {
	return func(cfg *PortForwardHandlerConfig) { cfg.StreamCreationTimeout = d }
}

// HandlePortForward returns a handler that forwards connections to ports of
// pods with h. The route must have the variables namespace and pod, of
// gorilla/mux or of http.ServeMux. With a nil h the handler answers 501.
func HandlePortForward(h PortForwardHandlerFunc, opts ...PortForwardHandlerOption) http.HandlerFunc {
	if h == nil {
		return NotImplemented
	}
	var cfg PortForwardHandlerConfig
	for _, opt := range opts {
		opt(&cfg)
	}
	timeouts := makeStreamTimeouts(cfg.StreamIdleTimeout, cfg.StreamCreationTimeout)
	return answerErrors(func(w http.ResponseWriter, req *http.Request) error {
		t, err := podTarget(req)
		if err != nil {
			return err
		}
		if wsstream.IsWebSocketRequestWithTunnelingProtocol(req) {
			return errdefs.InvalidInput("port-forward over WebSocket supports v4.channel.k8s.io, not the tunnelling of SPDY")
		}
		ports, err := portforward.NewV4Options(req)
		if err != nil {
			return errdefs.AsInvalidInput(err)
		}
		return serveUpgraded(w, req, portforward.ProtocolV1Name, nil, func(w http.ResponseWriter, req *http.Request) {
			f := &forwarder{ctx: req.Context(), target: t, forward: h}
			defer f.wait()
			portforward.ServePortForward(w, req, f, t.Pod, t.UID, ports,
				timeouts.idle, timeouts.creation, portforward.SupportedProtocols)
		})
	})
}

// forwarder implements portforward.PortForwarder for one client. It holds the
// context of the client's connection, because the library passes along one that never ends.
type forwarder struct {
	ctx     context.Context
	target  target
	forward PortForwardHandlerFunc

	mu      sync.Mutex
	closed  bool // no call may start any more; guarded by mu
	running sync.WaitGroup
}

// PortForward is called by the library in a goroutine per connection.
func (f *forwarder) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	if !f.begin() {
		return nil // the client has left
	}
	defer f.running.Done()
	return unlessGone(f.ctx, guard(f.ctx, func() error {
		return f.forward(f.ctx, f.target.Namespace, f.target.Pod, port, stream)
	}))
}

func (f *forwarder) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.running.Add(1)
	return true
}

// wait returns when every call has returned, and lets no new one begin: the
// library does not wait for the goroutines that it started.
func (f *forwarder) wait() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.running.Wait()
}
