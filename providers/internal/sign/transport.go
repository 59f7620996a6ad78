// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// MaxBody is the largest body of a signed request: the services accept no larger one.
const MaxBody = 12 << 20

// KeySource returns the current key.
type KeySource func(context.Context) (Key, error)

// Signed returns a transport that signs each request with the key of a project. now is the clock; nil means the
// clock of the machine.
func Signed(next http.RoundTripper, key KeySource, project string, now func() time.Time) http.RoundTripper {
	if now == nil {
		now = time.Now
	}
	return signed{next, key, project, now}
}

type signed struct {
	next    http.RoundTripper
	key     KeySource
	project string
	now     func() time.Time
}

// RoundTrip implements http.RoundTripper.
func (s signed) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	key, err := s.key(r.Context())
	if err != nil {
		return nil, fmt.Errorf("sign a request: %w", err)
	}
	if key.Access == "" || key.Secret == "" {
		return nil, errors.New("sign a request: there is no access key, or no secret of it")
	}
	r = withBody(r, body)
	setSigned(r, body, key, s.project, s.now())
	return s.next.RoundTrip(r)
}

// bodyOf reads and closes the body of a request.
func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the body of a request: %w", err)
	case len(body) > MaxBody:
		return nil, fmt.Errorf("the body of a request has more than %d bytes, which cannot be signed", MaxBody)
	}
	return body, nil
}

// withBody returns a copy of a request with the body. The headers of the copy may be changed.
func withBody(r *http.Request, body []byte) *http.Request {
	r = r.Clone(r.Context())
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.ContentLength = int64(len(body))
	}
	return r
}
