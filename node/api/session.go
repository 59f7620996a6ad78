// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

const (
	// defaultStreamIdleTimeout is a kubelet's default.
	defaultStreamIdleTimeout = 4 * time.Hour
	// defaultStreamCreationTimeout is a kubelet's default.
	defaultStreamCreationTimeout = 30 * time.Second
)

// streamTimeouts are the time limits of one streaming connection.
type streamTimeouts struct {
	idle     time.Duration
	creation time.Duration
}

func makeStreamTimeouts(idle, creation time.Duration) streamTimeouts {
	t := streamTimeouts{idle: idle, creation: creation}
	if t.idle <= 0 {
		t.idle = defaultStreamIdleTimeout
	}
	if t.creation <= 0 {
		t.creation = defaultStreamCreationTimeout
	}
	return t
}

// stopGrace is how long a connection outlives the context of a server that
// stops, so that the client still learns how its session ended: a SPDY client
// takes a connection that closes without a word for success.
const stopGrace = 500 * time.Millisecond

// errClientLeft is the cause of a context that ended because the client went
// away, and not because the server stops.
var errClientLeft = errors.New("the client left")

func clientLeft(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errClientLeft) }

func waitUpTo(d time.Duration, ended <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ended:
	}
}

// serveUpgraded calls serve with a writer whose connection is watched and with
// a request whose context ends when the client goes away, or when the server's
// base context ends. It closes the connection at the end: the library leaves it open when
// the client creates no streams in time.
//
// legacyProtocol is assumed for a SPDY client that names none. streams says how many streams
// such a client may open with a protocol; nil is no limit.
func serveUpgraded(w http.ResponseWriter, req *http.Request, legacyProtocol string, streams func(protocol string) int, serve func(http.ResponseWriter, *http.Request)) error {
	if err := requireUpgrade(req); err != nil {
		return err
	}
	if req.Context().Err() != nil { // it may have ended while the request was authorized
		http.Error(w, "503 the request has ended", http.StatusServiceUnavailable)
		return nil
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	up := &upgradeWriter{ResponseWriter: w, gone: func() { cancel(errClientLeft) }}
	if streams != nil && !wsstream.IsWebSocketRequest(req) {
		up.limit = func(protocol string) *streamLimit { return &streamLimit{left: streams(protocol)} }
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		if !clientLeft(ctx) {
			waitUpTo(stopGrace, ended)
		}
		up.close()
	})
	defer func() {
		close(ended)
		stop()
		cancel(nil)
		up.close()
		up.wait()
	}()

	req = req.Clone(ctx)
	if !wsstream.IsWebSocketRequest(req) && req.Header.Get(httpstream.HeaderProtocolVersion) == "" {
		req.Header.Set(httpstream.HeaderProtocolVersion, legacyProtocol)
	}
	err := guard(ctx, func() error {
		serve(up, req)
		return nil
	})
	if up.taken() {
		return nil // the connection is no longer HTTP: there is no way to answer
	}
	return err
}

// requireUpgrade refuses a request that asks for no upgrade. The library
// would do it too, but repeats the headers of the request in its answer, and with them
// the bearer token.
func requireUpgrade(req *http.Request) error {
	if wsstream.IsWebSocketRequest(req) {
		return nil
	}
	if httpstream.IsUpgradeRequest(req) &&
		strings.Contains(strings.ToLower(req.Header.Get(httpstream.HeaderUpgrade)), strings.ToLower(spdy.HeaderSpdy31)) {
		return nil
	}
	return errdefs.InvalidInput("the request must ask for an upgrade of the connection to SPDY/3.1 or WebSocket")
}
