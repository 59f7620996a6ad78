// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxBody is the maximum number of bytes that are read of a request.
const maxBody = 8 << 20

// Request is a request to the server.
type Request struct {
	// Operation is the service's name of the operation, for example RunTask.
	Operation string
	At        time.Time
	Method    string
	URL       string
	Header    http.Header
	Body      []byte
}

// Fault is a fault of requests. A zero Delay, Hang, Answer or Lose has no effect.
type Fault struct {
	// Operations are the operations with the fault; none means all.
	Operations []string
	// Times is the number of requests with the fault; 0 means all, until the fault ends.
	Times int
	// Delay is the time that a request waits before anything else.
	Delay time.Duration
	// Hang leaves a request without an answer, and without an effect, until its client disconnects.
	Hang bool
	// Answer answers instead of the service, with an error in the service's own form.
	Answer http.HandlerFunc
	// Lose executes the request, and closes the connection before the response.
	Lose bool
}

// Front is a handler in front of a server. It records the requests, and applies faults to them.
type Front struct {
	operation func(r *http.Request, body []byte) string
	next      http.Handler

	mu       sync.Mutex
	requests []Request // guarded by mu
	forgets  bool      // guarded by mu; requests stays empty
	faults   []*Fault  // guarded by mu
}

// NewFront returns a Front before next. operation names a request in the words of the service.
func NewFront(operation func(r *http.Request, body []byte) string, next http.Handler) *Front {
	return &Front{operation: operation, next: next}
}

// Forget makes the front record no requests from now on. A test that measures memory needs this.
func (f *Front) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests, f.forgets = nil, true
}

// Break applies a fault to requests from now on, and returns a function that ends the fault. If several faults match a request, the first
// one applies.
func (f *Front) Break(fault Fault) (mend func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := &fault
	f.faults = append(f.faults, own)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.faults = slices.DeleteFunc(f.faults, func(other *Fault) bool { return other == own })
	}
}

// Requests returns the requests of the operations in the order of their arrival, or all requests if no operation
// is given.
func (f *Front) Requests(operations ...string) (out []Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if len(operations) == 0 || slices.Contains(operations, r.Operation) {
			out = append(out, r)
		}
	}
	return out
}

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the emulator cannot read the request: "+err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	fault := f.recordRequest(Request{Operation: f.operation(r, body), At: time.Now(), Method: r.Method, URL: r.URL.String(), Header: r.Header.Clone(), Body: body})
	if fault.Delay > 0 {
		select {
		case <-time.After(fault.Delay):
		case <-r.Context().Done():
			return
		}
	}
	switch {
	case fault.Hang:
		<-r.Context().Done()
	case fault.Answer != nil:
		fault.Answer(w, r)
	case fault.Lose:
		f.next.ServeHTTP(&discard{header: http.Header{}}, r)
		panic(http.ErrAbortHandler) // net/http cuts the connection without a log entry
	default:
		f.next.ServeHTTP(w, r)
	}
}

// recordRequest records a request, and returns its fault.
func (f *Front) recordRequest(r Request) (hit Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.forgets {
		f.requests = append(f.requests, r)
	}
	for i, fault := range f.faults {
		if len(fault.Operations) > 0 && !slices.Contains(fault.Operations, r.Operation) {
			continue
		}
		hit = *fault
		if fault.Times > 0 {
			if fault.Times--; fault.Times == 0 {
				f.faults = slices.Delete(f.faults, i, i+1)
			}
		}
		return hit
	}
	return Fault{}
}

// discard is a ResponseWriter that drops the response.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}
