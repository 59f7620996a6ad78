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

// heartbeatTimeout bounds one heartbeat request. It leaves room for several attempts
// within the life of a lease.
const heartbeatTimeout = 10 * time.Second

// onOwnConnection gives cfg, a copy, a connection of its own: a Dial of its own prevents client-go from
// returning a cached transport.
func onOwnConnection(cfg *rest.Config) *rest.Config {
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return cfg
}

// heartbeatConfig returns a copy of base for the client of heartbeats: it shares neither the limiter nor the
// connection of pod traffic. A Dial of its own also prevents client-go from returning a cached transport.
//
// After a time-out it connects anew: on a connection whose packets vanish, HTTP/2 would wait for about 45
// seconds, which is longer than a lease lives.
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

// unshared returns a client for the same server and group as c, with a limiter and a time-out of its own. It
// shares the connection, so the connection belongs to the maker of c. It returns c unchanged if it cannot take c
// apart.
func unshared(c rest.Interface, gv schema.GroupVersion, timeout time.Duration) rest.Interface {
	return limited(c, gv, timeout, flowcontrol.NewTokenBucketRateLimiter(besidesQPS, besidesBurst))
}

// limited is unshared with a given limiter.
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

// withTimeout bounds a request until its answer is read, and a watch until its answer
// begins. The time-out of http.Client would cut watches as well.
type withTimeout struct {
	next      http.RoundTripper
	timeout   time.Duration
	onTimeout func()

	answered atomic.Int64 // when the last answer came, in nanoseconds
}

// late closes the connection after a time-out, unless other requests had an answer meanwhile. The connection is
// not dead then. Closing it would fail the requests of all the other nodes of the process, which would then come
// back all at once. own is the start of the late answer, 0 without an answer.
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
			late() // the caller's own deadline may have come first
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

// closingBody reports when an answer has been read.
type closingBody struct {
	io.ReadCloser
	closed func()
}

func (b *closingBody) Close() error {
	defer b.closed()
	return b.ReadCloser.Close()
}
