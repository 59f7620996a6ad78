// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/sleep"
)

// Fault is a fault of some requests. A zero field has no effect.
type Fault struct {
	// On selects the requests; nil means all.
	On func(Request) bool
	// Share is the affected share of these requests, from 0 to 1; 0 means all.
	Share float64
	// Delay is the time that a request waits before it is answered or forwarded.
	Delay time.Duration
	// Status is the answer to a request in place of the API server's. RetryAfter is the header of that name.
	Status     int
	RetryAfter time.Duration
	// InStream lets a watch begin, and sends Status as its first and last event.
	InStream bool
	// Silent lets a watch begin, and sends nothing.
	Silent bool
	// Revision makes lists return the objects at this resource version.
	Revision string
}

// active is an injected fault.
type active struct{ Fault }

// Inject applies f from now on to requests without an earlier fault, until remove is called.
func (p *Proxy) Inject(f Fault) (remove func()) {
	a := &active{f}
	p.mu.Lock()
	p.faults = append(p.faults, a)
	p.mu.Unlock()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = slices.DeleteFunc(p.faults, func(other *active) bool { return other == a })
	}
}

// faultFor returns the fault of a request.
func (p *Proxy) faultFor(req Request) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if (f.On == nil || f.On(req)) && (f.Share == 0 || rand.Float64() < f.Share) { //nolint:gosec // no secret
			return f.Fault
		}
	}
	return Fault{}
}

// watching is an open watch.
type watching struct {
	Request
	cut context.CancelFunc
}

// CutWatches breaks the open watches for which on returns true, or all watches if on is nil, and nothing else on
// their connections. It returns the number of broken watches.
func (p *Proxy) CutWatches(on func(Request) bool) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.watches {
		if on == nil || on(w.Request) {
			w.cut()
			n++
		}
	}
	return n
}

// ServeHTTP handles one request of a client.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	p.handlers.Add(1)
	defer p.handlers.Done()
	asked := parseRequest(req)
	kept := p.add(asked)
	if asked.Verb == "watch" {
		ctx, cut := context.WithCancel(req.Context())
		defer p.openWatch(&watching{asked, cut})()
		req = req.WithContext(ctx)
	}
	f := p.faultFor(asked)
	if !sleep.For(req.Context(), f.Delay) {
		panic(http.ErrAbortHandler)
	}
	answer := &recorded{ResponseWriter: w, begun: func(status int) { p.recordAnswer(kept, status, f.answersRequest()) }}
	switch {
	case f.InStream || f.Silent:
		f.answerWatch(answer, req)
	case f.Status != 0:
		f.refuseRequest(answer)
	default:
		if f.Revision != "" && asked.Verb == "list" {
			req = atRevision(req, f.Revision)
		}
		p.forward.ServeHTTP(answer, req)
	}
}

// openWatch counts an open watch until the returned function is called.
func (p *Proxy) openWatch(w *watching) (done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches[w] = true
	return func() {
		w.cut()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watches, w)
	}
}

func (f Fault) answersRequest() bool { return f.Status != 0 || f.Silent || f.Revision != "" }

// reasons are the reasons checked by clients.
var reasons = map[int]metav1.StatusReason{
	http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
	http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusGone:                metav1.StatusReasonExpired,
	http.StatusForbidden:           metav1.StatusReasonForbidden,
	http.StatusUnauthorized:        metav1.StatusReasonUnauthorized,
	http.StatusConflict:            metav1.StatusReasonConflict,
	http.StatusNotFound:            metav1.StatusReasonNotFound,
}

func (f Fault) statusObject() metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(f.Status), Reason: reasons[f.Status],
		Message: "injected fault: " + http.StatusText(f.Status),
	}
}

func (f Fault) refuseRequest(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
	}
	w.WriteHeader(f.Status)
	_ = json.NewEncoder(w).Encode(f.statusObject()) // the client may have disconnected
}

// answerWatch answers a watch.
func (f Fault) answerWatch(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json;stream=watch")
	w.WriteHeader(http.StatusOK)
	if !f.Silent {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "ERROR", "object": f.statusObject()})
		return
	}
	_ = http.NewResponseController(w).Flush()
	<-req.Context().Done()
}

// atRevision turns a list into a list of the past; the API server remembers it for a few minutes.
func atRevision(req *http.Request, revision string) *http.Request {
	req = req.Clone(req.Context())
	q := req.URL.Query()
	q.Del("continue")
	q.Set("resourceVersion", revision)
	q.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	req.URL.RawQuery = q.Encode()
	return req
}

// recorded records the status of an answer when the answer begins.
type recorded struct {
	http.ResponseWriter
	begun func(status int)
	told  bool
}

// Unwrap gives access to the server's other abilities.
func (w *recorded) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *recorded) WriteHeader(status int) {
	if !w.told && status >= http.StatusOK {
		w.told = true
		w.begun(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *recorded) Write(b []byte) (int, error) {
	if !w.told {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}
