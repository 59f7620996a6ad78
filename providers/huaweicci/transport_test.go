// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fn is a function as a transport.
type fn func(*http.Request) (*http.Response, error)

func (f fn) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answers(code int, contentType, body string) *http.Response {
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body))}
}

func TestNamesOfCCI(t *testing.T) {
	for name, tt := range map[string]struct{ method, path, send, sent, answer, want string }{
		"create": {"POST", "/api/v1/namespaces/n/pods", `{"apiVersion":"v1","kind":"Pod","spec":{"x":12345678901234567890}}`,
			`/apis/cci/v2/namespaces/n/pods {"apiVersion":"cci/v2","kind":"Pod","spec":{"x":12345678901234567890}}`,
			`{"apiVersion":"cci/v2","kind":"Pod"}`, `{"apiVersion":"v1","kind":"Pod"}`},
		"list": {"GET", "/api/v1/namespaces/n/pods", "", "/apis/cci/v2/namespaces/n/pods ",
			`{"apiVersion":"cci/v2","kind":"PodList","items":[{"apiVersion":"cci/v2","kind":"Pod","metadata":{"name":"cci/v2"}},{"spec":{}}]}`,
			`{"apiVersion":"v1","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"cci/v2"}},{"spec":{}}],"kind":"PodList"}`},
		"empty list": {"GET", "/api/v1/namespaces/n/pods", "", "/apis/cci/v2/namespaces/n/pods ",
			`{"apiVersion":"cci/v2","items":null,"kind":"PodList"}`, `{"apiVersion":"v1","items":null,"kind":"PodList"}`},
		"watch": {"GET", "/api/v1/namespaces/n/pods?watch=true", "", "/apis/cci/v2/namespaces/n/pods ",
			`{"type":"ADDED","object":{"apiVersion":"cci/v2","kind":"Pod"}} {"type":"ERROR","object":{"apiVersion":"v1","kind":"Status"}}`,
			`{"object":{"apiVersion":"v1","kind":"Pod"},"type":"ADDED"}` + "\n" + `{"object":{"apiVersion":"v1","kind":"Status"},"type":"ERROR"}` + "\n"},
		"patch": {"PATCH", "/api/v1/namespaces/n/pods/p", `{"apiVersion":"v1"}`, `/apis/cci/v2/namespaces/n/pods/p {"apiVersion":"v1"}`,
			`{"apiVersion":"cci/v2"}`, `{"apiVersion":"v1"}`},
		"another group": {"POST", "/apis/yangtse/v2/namespaces/n/networks", `{"apiVersion":"yangtse/v2"}`, `/apis/yangtse/v2/namespaces/n/networks {"apiVersion":"yangtse/v2"}`,
			`{"apiVersion":"yangtse/v2"}`, `{"apiVersion":"yangtse/v2"}`},
	} {
		var sent string
		transport := renamed{fn(func(r *http.Request) (*http.Response, error) {
			var body []byte
			if r.Body != nil {
				body, _ = io.ReadAll(r.Body)
			}
			sent = r.URL.Path + " " + string(body)
			return answers(200, "application/json", tt.answer), nil
		})}
		var body io.Reader
		if tt.send != "" {
			body = strings.NewReader(tt.send)
		}
		answer, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), tt.method, "https://cci.example.com"+tt.path, body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := readAll(t, answer.Body); sent != tt.sent || got != tt.want {
			t.Errorf("%s:\nsent %s\nwant %s\ngot  %s\nwant %s", name, sent, tt.sent, got, tt.want)
		}
	}
	log := renamed{fn(func(*http.Request) (*http.Response, error) {
		return answers(200, "text/plain", `{"apiVersion":"cci/v2"}`), nil
	})}
	answer, err := log.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://cci.example.com/api/v1/namespaces/n/pods/p/log", nil))
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, answer.Body); got != `{"apiVersion":"cci/v2"}` {
		t.Errorf("a log became %s", got)
	}
}

func TestErrorsAreExplained(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tt := range map[string]struct {
		code   int
		header map[string]string
		body   string
		want   metav1.Status
	}{
		"CCI": {403, nil, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"in arrears","reason":"Forbidden","code":403,"errorCode":"CCI.01.403009"}`,
			metav1.Status{Message: "in arrears (CCI.01.403009)", Reason: metav1.StatusReasonForbidden}},
		"the gateway": {401, map[string]string{"Date": "Fri, 02 Jan 2026 03:10:05 GMT"}, `{"error_code":"APIGW.0301","error_msg":"Incorrect IAM authentication information","request_id":"1"}`,
			metav1.Status{Message: "Incorrect IAM authentication information (APIGW.0301), request 1", Reason: metav1.StatusReasonUnauthorized}},
		"the clock": {401, map[string]string{"Date": "Fri, 02 Jan 2026 02:04:05 GMT"}, `{"error_msg":"no"}`,
			metav1.Status{Message: "no: the clock of this machine is 1h0m0s off that of CCI: set it, as signatures have a time", Reason: metav1.StatusReasonUnauthorized}},
		"busy": {429, map[string]string{"Retry-After": "9"}, `busy`,
			metav1.Status{Message: "CCI answers Too Many Requests", Reason: metav1.StatusReasonTooManyRequests, Details: &metav1.StatusDetails{RetryAfterSeconds: 9}}},
		"nothing is said": {502, nil, "", metav1.Status{Message: "CCI answers Bad Gateway"}},
	} {
		a := answers(tt.code, "text/html", tt.body)
		for k, v := range tt.header {
			a.Header.Set(k, v)
		}
		transport := explained{fn(func(*http.Request) (*http.Response, error) { return a, nil }), func() time.Time { return now }}
		answer, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://cci.example.com", nil))
		if err != nil {
			t.Fatal(err)
		}
		var got metav1.Status
		if err := json.Unmarshal([]byte(readAll(t, answer.Body)), &got); err != nil {
			t.Fatal(err)
		}
		if got.Message != tt.want.Message || got.Reason != tt.want.Reason || got.Code != int32(tt.code) || got.Kind != "Status" || answer.Header.Get("Retry-After") != "" {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
		if (got.Details == nil) != (tt.want.Details == nil) || got.Details != nil && got.Details.RetryAfterSeconds != tt.want.Details.RetryAfterSeconds {
			t.Errorf("%s: got the details %v, want %v", name, got.Details, tt.want.Details)
		}
	}
}

// TestRedirectIsNotFollowed checks that redirects are errors: a client that follows one would send the
// credentials along.
func TestRedirectIsNotFollowed(t *testing.T) {
	for _, code := range []int{301, 302, 307, 308} {
		a := answers(code, "text/html", "")
		a.Header.Set("Location", "http://elsewhere.example.com/")
		asked := 0
		client := http.Client{Transport: explained{next: fn(func(*http.Request) (*http.Response, error) { asked++; return a, nil }), now: time.Now}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://cci.example.com/x", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err == nil {
			_ = answer.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "not followed") || asked != 1 {
			t.Errorf("%d: got %v after %d requests, want an error that says so after one", code, err, asked)
		}
	}
}
