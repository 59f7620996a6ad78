// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Request is one request of a client.
type Request struct {
	At          time.Time // when the request came
	Verb        string    // get, list, watch, create, update, patch, delete or deletecollection
	Resource    string    // for example pods; "" for a path without a resource
	Subresource string    // for example status
	Namespace   string
	Name        string
	Path        string // with the query
	Length      int64  // of its body; -1 if unknown

	// Known when the response begins.
	Status   int  // 0: no answer so far
	Injected bool // a fault gave the answer
}

// Writes reports whether the request changes something.
func (r Request) Writes() bool { return r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" }

// Is returns a condition: a request is about the resource and has one of the verbs, or any verb if no verb is
// given.
func Is(resource string, verbs ...string) func(Request) bool {
	return func(r Request) bool {
		return r.Resource == resource && (len(verbs) == 0 || slices.Contains(verbs, r.Verb))
	}
}

// Writes is a condition: the request changes something.
func Writes(r Request) bool { return r.Writes() }

// Watches is a condition: the request is a watch.
func Watches(r Request) bool { return r.Verb == "watch" }

// parseRequest returns the contents of a request.
func parseRequest(req *http.Request) Request {
	out := Request{At: time.Now(), Path: req.URL.RequestURI(), Length: req.ContentLength}
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2: // api/v1/...
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3: // apis/group/v1/...
		parts = parts[3:]
	default:
		parts = nil
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		out.Namespace, parts = parts[1], parts[2:]
	}
	for i, field := range []*string{&out.Resource, &out.Name, &out.Subresource} {
		if i < len(parts) {
			*field = parts[i]
		}
	}
	out.Verb = requestVerb(req, out.Name)
	return out
}

func requestVerb(req *http.Request, name string) string {
	watch := req.URL.Query().Get("watch")
	switch {
	case req.Method == http.MethodGet && (watch == "true" || watch == "1"):
		return "watch"
	case req.Method == http.MethodGet && name == "":
		return "list"
	case req.Method == http.MethodDelete && name == "":
		return "deletecollection"
	}
	verbs := map[string]string{http.MethodPost: "create", http.MethodPut: "update"}
	if v := verbs[req.Method]; v != "" {
		return v
	}
	return strings.ToLower(req.Method)
}

// record is every request in the order of arrival.
type record struct {
	mu      sync.Mutex
	all     []*Request    // guarded by mu
	changed chan struct{} // guarded by mu; closed at the next change
}

func newRecord() *record { return &record{changed: make(chan struct{})} }

func (r *record) add(req Request) *Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := &req
	r.all = append(r.all, kept)
	r.wakeWaiters()
	return kept
}

func (r *record) recordAnswer(req *Request, status int, injected bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	req.Status, req.Injected = status, injected
	r.wakeWaiters()
}

// wakeWaiters wakes the waiting callers. The caller holds mu.
func (r *record) wakeWaiters() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// Requests returns the requests so far for which keep is true, or all if it is nil.
func (r *record) Requests(keep func(Request) bool) (out []Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.matchingRequests(keep)
}

func (r *record) matchingRequests(keep func(Request) bool) (out []Request) {
	for _, req := range r.all {
		if keep == nil || keep(*req) {
			out = append(out, *req)
		}
	}
	return out
}

// Count returns the number of requests that Requests would return.
func (r *record) Count(keep func(Request) bool) int { return len(r.Requests(keep)) }

// Await returns when n requests for which keep is true have come and their answers fulfil the condition, or with
// the cause of the end of ctx.
func (r *record) Await(ctx context.Context, n int, keep func(Request) bool) error {
	for {
		r.mu.Lock()
		enough, changed := len(r.matchingRequests(keep)) >= n, r.changed
		r.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
