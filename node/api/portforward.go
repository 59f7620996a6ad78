// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// PortForwardHandlerFunc connects stream with a port of a pod and returns when the connection has ended. It is
// called once per connection, so several calls for one client run at the same time. ctx ends when the client
// goes away. The client sees the text of an error.
type PortForwardHandlerFunc func(ctx context.Context, namespace, pod string, port int32, stream io.ReadWriteCloser) error

// PortForwardHandlerConfig holds the limits of port-forward.
type PortForwardHandlerConfig struct {
	// StreamIdleTimeout ends a connection without traffic after this time. Zero means 4 hours.
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
		var ports portforward.V4Options
		tunnelled := wsstream.IsWebSocketRequestWithTunnelingProtocol(req)
		if !tunnelled {
			inQuery, err := portforward.NewV4Options(req)
			if err != nil {
				return errdefs.AsInvalidInput(err)
			}
			ports = *inQuery
		}
		if len(ports.Ports) > maxForwarded {
			return errdefs.InvalidInputf("%d ports in one request; at most %d are forwarded", len(ports.Ports), maxForwarded)
		}
		u := upgrade{
			verb: verbPortForward, target: t, timeouts: timeouts, legacyProtocol: portforward.ProtocolV1Name,
			frames: func(string) *frameLimiter { return newForwardLimiter() },
		}
		if tunnelled || !wsstream.IsWebSocketRequest(req) {
			u.memory = forwardPool
		}
		return u.serve(w, req, func(w http.ResponseWriter, req *http.Request, record *streamRecord) {
			f := &forwarder{ctx: req.Context(), target: t, forward: h, record: record}
			defer f.wait()
			serve := func(w http.ResponseWriter, req *http.Request) {
				portforward.ServePortForward(w, req, f, t.Pod, t.UID, &ports,
					timeouts.idle, timeouts.creation, portforward.SupportedProtocols)
			}
			if tunnelled {
				serve = throughTunnel(serve)
			}
			serve(w, req)
		})
	})
}

var (
	errTooManyForwarded = fmt.Errorf("too many connections: %d are forwarded already", maxForwarded)
	errTooManyInAll     = fmt.Errorf("too many connections: %d are forwarded by this node for all clients", maxForwardedInAll)
)

// forwarder implements portforward.PortForwarder for one client. It holds the context of the client's
// connection, because the library passes a context that never ends.
type forwarder struct {
	ctx     context.Context
	target  target
	forward PortForwardHandlerFunc
	record  *streamRecord

	mu      sync.Mutex
	closed  bool // no call may start; guarded by mu
	calls   int  // running calls; guarded by mu
	running sync.WaitGroup
}

// PortForward is called by the library in a goroutine per connection.
func (f *forwarder) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	if ok, err := f.begin(); !ok {
		return err
	}
	defer f.end()
	err := recoverPanic(f.ctx, func() error {
		return f.forward(f.ctx, f.target.Namespace, f.target.Pod, port, newForwardedStream(stream))
	})
	f.record.called(f.ctx, err)
	if why := refusalOf(f.ctx); why != nil {
		return why
	}
	return unlessGone(f.ctx, err)
}

// begin reports whether a call may begin. It returns false without an error if the client has disconnected.
func (f *forwarder) begin() (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return false, nil
	case f.calls >= maxForwarded:
		return false, errTooManyForwarded
	case !forwardedInAll.take(1):
		return false, errTooManyInAll
	}
	f.calls++
	f.running.Add(1)
	return true, nil
}

func (f *forwarder) end() {
	f.mu.Lock()
	f.calls--
	f.mu.Unlock()
	forwardedInAll.give(1)
	f.running.Done()
}

// wait prevents new calls and returns when every running call has returned: the library does not wait for the goroutines that it started.
func (f *forwarder) wait() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.running.Wait()
}
