// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/client-go/util/flowcontrol"
)

// heartbeatTimeout bounds one heartbeat request. It allows several attempts before the lease expires.
const heartbeatTimeout = 10 * time.Second

// onOwnConnection sets a Dial function in cfg, a copy, so that client-go does not reuse a cached transport and its connection.
func onOwnConnection(cfg *rest.Config) *rest.Config {
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return cfg
}

// heartbeatConfig returns a copy of base for the client of heartbeats: it shares neither the limiter nor the connection of pod traffic. Its
// own Dial function also prevents client-go from reusing a cached transport.
//
// After a timeout the client reconnects: HTTP/2 would wait for about 45 seconds on a connection that loses all packets, longer than a lease
// lives.
func heartbeatConfig(base *rest.Config, timeout time.Duration) *rest.Config {
	cfg := withLimits(base, besidesQPS, besidesBurst)
	dial := base.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}).DialContext
	}
	conns := connrotation.NewDialer(dial)
	cfg.Dial = conns.DialContext
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &withTimeout{next: next, timeout: timeout, onTimeout: conns.CloseAll}
	})
	return cfg
}

// unshared returns a client for the same server and group as c, with its own limiter and timeout. It shares the connection of c and does
// not own it. It returns c unchanged if c has another implementation.
func unshared(c rest.Interface, gv schema.GroupVersion, timeout time.Duration) rest.Interface {
	return limited(c, gv, timeout, flowcontrol.NewTokenBucketRateLimiter(besidesQPS, besidesBurst))
}

// limited is unshared with the given limiter.
func limited(c rest.Interface, gv schema.GroupVersion, timeout time.Duration, limiter flowcontrol.RateLimiter) rest.Interface {
	shared, ok := c.(*rest.RESTClient)
	if !ok || shared == nil || shared.Client == nil {
		return c
	}
	httpClient := *shared.Client
	next := httpClient.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	httpClient.Transport = &withTimeout{next: next, timeout: timeout, onTimeout: func() {}}

	prefix := shared.Get().URL()
	own, err := rest.NewRESTClient(
		&url.URL{Scheme: prefix.Scheme, Host: prefix.Host},
		prefix.Path,
		rest.ClientContentConfig{
			AcceptContentTypes: runtime.ContentTypeJSON,
			ContentType:        runtime.ContentTypeJSON,
			GroupVersion:       gv,
			Negotiator:         runtime.NewClientNegotiator(scheme.Codecs.WithoutConversion(), gv),
		},
		limiter,
		&httpClient,
	)
	if err != nil {
		return c
	}
	return own
}

// withTimeout bounds a request until its response is read, and a watch until its response begins. The timeout of http.Client would also end
// watches.
type withTimeout struct {
	next      http.RoundTripper
	timeout   time.Duration
	onTimeout func()

	answered atomic.Int64 // time of the last response, in nanoseconds
}

// late closes the connection after a timeout, unless other requests received a response in the meantime: then the connection works, and
// closing it would fail the requests of all other nodes of the process at once. own is the time of the late response, 0 without a response.
func (t *withTimeout) late(own int64) {
	if last := t.answered.Load(); last == own || time.Since(time.Unix(0, last)) >= t.timeout {
		t.onTimeout()
	}
}

func (t *withTimeout) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	var began atomic.Int64
	var once sync.Once // a second call would close newer connections of other callers
	late := func() { once.Do(func() { t.late(began.Load()) }) }
	timer := time.AfterFunc(t.timeout, func() {
		cancel(context.DeadlineExceeded)
		late()
	})
	stop := func() {
		timer.Stop()
		cancel(nil)
	}

	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, context.DeadlineExceeded) {
			late() // the caller's own deadline may have expired first
			err = fmt.Errorf("no answer in time: %w", cause)
		}
		stop()
		return nil, err
	}
	now := time.Now().UnixNano()
	began.Store(now)
	t.answered.Store(now)
	if req.URL.Query().Has("watch") {
		timer.Stop()
	}
	resp.Body = &closingBody{ReadCloser: resp.Body, closed: stop}
	return resp, nil
}

// closingBody calls a function when a response has been read.
type closingBody struct {
	io.ReadCloser
	closed func()
}

func (b *closingBody) Close() error {
	defer b.closed()
	return b.ReadCloser.Close()
}
