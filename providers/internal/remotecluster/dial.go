// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// dialPod opens a port-forward connection that lasts until ctx ends, over a websocket, or over SPDY if the server
// does not support websockets. client-go accepts no context here; without one, a hanging API server would block
// after the client has left.
func dialPod(ctx context.Context, access *rest.Config, to *url.URL) (httpstream.Connection, error) {
	dialer, err := dialerFor(accessUntil(ctx, access), to)
	if err != nil {
		return nil, err
	}
	type dialed struct {
		conn httpstream.Connection
		err  error
	}
	done := make(chan dialed, 1)
	go func() { // ends when ctx ends or, with SPDY, when the server answers
		conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		if err == nil {
			context.AfterFunc(ctx, func() { _ = conn.Close() }) // also closes a connection that the caller no longer waits for
		}
		done <- dialed{conn, err}
	}()
	select {
	case d := <-done:
		return d.conn, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// accessUntil returns a client configuration whose requests and connections end with ctx.
func accessUntil(ctx context.Context, access *rest.Config) *rest.Config {
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		context.AfterFunc(ctx, func() { _ = got.Conn.Close() })
	}})
	access = rest.CopyConfig(access)
	access.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return next.RoundTrip(r.WithContext(traced)) })
	})
	return access
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func dialerFor(access *rest.Config, to *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(access)
	if err != nil {
		return nil, err
	}
	overWebsocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(to, access)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(overWebsocket, spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, to), notSpoken), nil
}
