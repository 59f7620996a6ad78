// SPDX-License-Identifier: Apache-2.0

package remotetest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
)

// Direct is a transport that calls a handler without a network, for tests in a synctest bubble.
type Direct struct{ Handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (d Direct) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	got := httptest.NewRecorder()
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	defer func() {
		if lost := recover(); lost != nil { // such as http.ErrAbortHandler
			answer, err = nil, fmt.Errorf("the connection was reset: %v", lost)
		}
	}()
	d.Handler.ServeHTTP(got, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return got.Result(), nil
}
