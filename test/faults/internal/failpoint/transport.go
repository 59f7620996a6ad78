// SPDX-License-Identifier: Apache-2.0

package failpoint

import (
	"net/http"
	"strings"
)

// Transport returns inner with the points around it.
func (p *Plan) Transport(inner http.RoundTripper) http.RoundTripper {
	return &transport{inner: inner, plan: p}
}

type transport struct {
	inner http.RoundTripper
	plan  *Plan
}

func (t *transport) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	what := requestPoint(req.Method, req.URL.Path)
	if what == "" {
		return t.inner.RoundTrip(req)
	}
	t.plan.callBetween(what, func() { resp, err = t.inner.RoundTrip(req) }) //nolint:bodyclose // the caller closes it
	return resp, err
}

// requestPoint returns the name of a request with points, or "" for a request without.
func requestPoint(method, path string) string {
	reads := method == http.MethodGet
	switch {
	case reads:
	case method == http.MethodPatch && strings.HasSuffix(path, "/status") && strings.Contains(path, "/pods/"):
		return "patch pod status"
	case method == http.MethodDelete && strings.Contains(path, "/pods/"):
		return "remove pod"
	case strings.Contains(path, "/leases"):
		return "write lease"
	case method == http.MethodPatch && strings.Contains(path, "/nodes/"):
		return "patch node"
	case strings.HasSuffix(path, "/events") || strings.Contains(path, "/events/"):
		return "write event"
	}
	return ""
}
