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

// errCut is the error of requests that are cut.
var errCut = errors.New("the network is cut")

// line is what is between a provider and its API server, and what a test does to it.
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

// CloseIdleConnections is what http.Client calls.
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

// count is how many requests there were of a kind, such as POST /create.
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

// all are the requests until now.
func (l *line) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}
