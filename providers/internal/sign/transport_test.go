// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// fn is a function as a transport.
type fn func(*http.Request) (*http.Response, error)

func (f fn) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(code int) *http.Response {
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{}, Body: http.NoBody}
}

func TestSignedRequest(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("east", 8*3600))
	key := Key{Access: "AK", Secret: "SK"}
	var sent []*http.Request
	var bodies []string
	transport := Signed(fn(func(r *http.Request) (*http.Response, error) {
		var body []byte
		if r.Body != nil {
			body, _ = io.ReadAll(r.Body)
		}
		sent, bodies = append(sent, r), append(bodies, string(body))
		return answer(200), nil
	}), func(context.Context) (Key, error) { return key, nil }, "project", func() time.Time { return now })

	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.com/a?b=c", strings.NewReader("text"))
	do := func() {
		t.Helper()
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	do()
	want := Authorization(Request{Method: "POST", URL: r.URL, Body: []byte("text"), Header: map[string]string{
		"Host": "example.com", HeaderDate: "20260101T190405Z", HeaderProject: "project"}}, key)
	if got := sent[0].Header.Get("Authorization"); got != want || bodies[0] != "text" || sent[0].Header.Get(HeaderDate) != "20260101T190405Z" {
		t.Errorf("sent %q with body %q, want %q", got, bodies[0], want)
	}
	if r.Header.Get("Authorization") != "" {
		t.Error("the request of the caller was changed")
	}

	key = Key{Access: "AK2", Secret: "SK2", Token: "temporary"} // a temporary key has replaced it
	r = httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com/a", nil)
	do()
	if got := sent[1].Header; !strings.Contains(got.Get("Authorization"), "Access=AK2, SignedHeaders=host;x-project-id;x-sdk-date;x-security-token,") || got.Get(HeaderSecurityToken) != "temporary" {
		t.Errorf("after the key was replaced the headers are %v", got)
	}
}

func TestNothingIsSentUnsigned(t *testing.T) {
	for name, source := range map[string]KeySource{
		"no key":    func(context.Context) (Key, error) { return Key{}, nil },
		"no secret": func(context.Context) (Key, error) { return Key{Access: "AK"}, nil },
		"no file":   func(context.Context) (Key, error) { return Key{}, errors.New("no such file") },
	} {
		transport := Signed(fn(func(*http.Request) (*http.Response, error) {
			t.Errorf("%s: a request was sent", name)
			return answer(200), nil
		}), source, "", nil)
		answer, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com", nil))
		if err == nil {
			_ = answer.Body.Close()
			t.Errorf("%s: got no error", name)
		}
	}
	large := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.com", strings.NewReader(strings.Repeat("x", MaxBody+1)))
	transport := Signed(http.DefaultTransport, func(context.Context) (Key, error) { return Key{Access: "a", Secret: "s"}, nil }, "", nil)
	if answer, err := transport.RoundTrip(large); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("a body that is too large: got %v, %v", answer, err)
	}
}
