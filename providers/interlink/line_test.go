// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// errCut is the error of requests that a test cuts.
var errCut = errors.New("the network is cut")

// line is the connection between a provider and its API server. A test can cut and throttle it, and count its
// requests.
type line struct {
	next http.RoundTripper

	mu        sync.Mutex
	cut       bool     // guarded by mu
	throttled bool     // guarded by mu
	lose      bool     // guarded by mu; the answer to the next create
	requests  []string // guarded by mu
}

// through puts a line between a provider and its server.
func through(p *provider) *line {
	l := &line{next: p.client.http.Transport}
	p.client.http.Transport = l
	return l
}

// RoundTrip implements http.RoundTripper.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	cut, throttled := l.cut, l.throttled
	lose := l.lose && r.URL.Path == wire.PathCreate
	if lose {
		l.lose = false
	}
	l.requests = append(l.requests, r.Method+" "+r.URL.Path)
	l.mu.Unlock()
	switch {
	case cut:
		return nil, errCut
	case throttled:
		return &http.Response{StatusCode: http.StatusTooManyRequests, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("too many requests")), Request: r}, nil
	}
	resp, err := l.next.RoundTrip(r)
	if err == nil && lose {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return nil, errCut
	}
	return resp, err
}

// CloseIdleConnections implements the method that http.Client calls.
func (l *line) CloseIdleConnections() {
	if t, ok := l.next.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

func (l *line) set(f func(*line)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
}

// count returns the number of requests of a kind, such as POST /create.
func (l *line) count(what string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.requests {
		if r == what {
			n++
		}
	}
	return n
}

// all returns all requests so far.
func (l *line) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}
