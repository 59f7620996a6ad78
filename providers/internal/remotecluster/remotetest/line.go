// SPDX-License-Identifier: Apache-2.0

package remotetest

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// errCut is the error of cut requests.
var errCut = errors.New("the network is cut")

// Line connects a provider to its remote cluster, and lets a test inject faults into the connection. The zero
// Line injects none.
type Line struct {
	// Creates is the resource whose create responses can be lost. "" means pods.
	Creates string

	mu         sync.Mutex
	cut        bool               // guarded by mu
	throttled  bool               // guarded by mu
	loseAnswer bool               // guarded by mu; of the next create
	open       map[io.Closer]bool // guarded by mu; open response bodies
	requests   []string           // guarded by mu; method and path
}

// Through returns a client configuration that uses the line.
func (l *Line) Through(access *rest.Config) *rest.Config {
	access = rest.CopyConfig(access)
	access.QPS, access.Burst = -1, 0
	access.Wrap(func(next http.RoundTripper) http.RoundTripper { return through{l, next} })
	return access
}

type through struct {
	line *Line
	next http.RoundTripper
}

func (t through) RoundTrip(r *http.Request) (*http.Response, error) {
	l := t.line
	l.mu.Lock()
	cut, throttled := l.cut, l.throttled
	l.requests = append(l.requests, r.Method+" "+r.URL.Path)
	lose := l.loseAnswer && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/"+cmp.Or(l.Creates, "pods"))
	if lose {
		l.loseAnswer = false
	}
	l.mu.Unlock()
	switch {
	case cut:
		return nil, errCut
	case throttled:
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429}`
		return &http.Response{
			StatusCode: http.StatusTooManyRequests, Status: "429 Too Many Requests", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
		}, nil
	}
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if lose {
		_ = answer.Body.Close()
		return nil, errCut
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		answer.Body = l.keepBody(answer.Body)
	}
	return answer, nil
}

// body is a response body. A cut closes it.
type body struct {
	io.ReadCloser
	line *Line
}

func (l *Line) keepBody(b io.ReadCloser) io.ReadCloser {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := &body{b, l}
	if l.open == nil {
		l.open = map[io.Closer]bool{}
	}
	l.open[kept] = true
	return kept
}

func (b *body) Close() error {
	b.line.mu.Lock()
	delete(b.line.open, b)
	b.line.mu.Unlock()
	return b.ReadCloser.Close()
}

// Outage cuts the line and all open responses, or restores the line.
func (l *Line) Outage(on bool) {
	l.mu.Lock()
	l.cut = on
	var open []io.Closer
	for b := range l.open {
		open = append(open, b.(*body).ReadCloser)
	}
	l.mu.Unlock()
	if on {
		for _, b := range open {
			_ = b.Close()
		}
	}
}

// Throttle makes the remote API server return 429 Too Many Requests.
func (l *Line) Throttle(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.throttled = on
}

// LoseNext forwards the next create, and loses its response.
func (l *Line) LoseNext() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loseAnswer = true
}

// Writes returns the modifying requests since the last call.
func (l *Line) Writes() (writes []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	writes = slices.DeleteFunc(l.requests, func(r string) bool { return strings.HasPrefix(r, http.MethodGet+" ") })
	l.requests = nil
	return writes
}

// Seen returns the requests since the last call of Writes.
func (l *Line) Seen() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}
