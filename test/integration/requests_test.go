// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// request is one request that a node made to the API server.
type request struct {
	method, path string
	query        url.Values
	body         string // of a write
	status       int    // 0: no answer
	answer       string // of a refusal
}

func (r request) String() string {
	return fmt.Sprintf("%s %s?%s %s: %d %s", r.method, r.path, r.query.Encode(), r.body, r.status, r.answer)
}

func (r request) writes() bool { return r.method != http.MethodGet }

// requests records the requests of a node to the API server.
type requests struct {
	changed signal
	mu      sync.Mutex
	all     []request // guarded by mu
}

// watch records the requests of every client made from config.
func (r *requests) watch(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &recorder{next: next, to: r} })
}

func (r *requests) add(one request) {
	r.mu.Lock()
	r.all = append(r.all, one)
	r.mu.Unlock()
	r.changed.raise()
}

// those returns the requests for which keep returns true.
func (r *requests) those(keep func(request) bool) (out []request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		if keep(one) {
			out = append(out, one)
		}
	}
	return out
}

// podWrites returns the writes to pods, by namespace/name.
func (r *requests) podWrites() map[string][]request {
	out := map[string][]request{}
	for _, one := range r.those(request.writes) {
		// /api/v1/namespaces/NS/pods/NAME[/status]
		parts := strings.Split(strings.TrimPrefix(one.path, "/"), "/")
		if len(parts) >= 6 && parts[4] == "pods" {
			key := parts[3] + "/" + parts[5]
			out[key] = append(out[key], one)
		}
	}
	return out
}

// refusals returns the requests that the API server refused.
func (r *requests) refusals() []request {
	return r.those(func(one request) bool {
		return one.status == http.StatusForbidden || one.status == http.StatusUnauthorized
	})
}

type recorder struct {
	next http.RoundTripper
	to   *requests
}

// WrappedRoundTripper lets client-go reach the transport below, to close its
// connections.
func (t *recorder) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	one := request{method: req.Method, path: req.URL.Path, query: req.URL.Query()}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		one.body = string(body)
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		one.status = resp.StatusCode
		if one.status >= http.StatusBadRequest {
			answer, _ := io.ReadAll(resp.Body) // an unreadable answer is missing in a message only
			_ = resp.Body.Close()
			one.answer = string(answer)
			resp.Body = io.NopCloser(bytes.NewReader(answer))
		}
	}
	t.to.add(one)
	return resp, err
}

// lines returns the things as lines of text, for messages.
func lines[T fmt.Stringer](things []T) string {
	var b strings.Builder
	for thing := range slices.Values(things) {
		fmt.Fprintln(&b, thing)
	}
	return b.String()
}
