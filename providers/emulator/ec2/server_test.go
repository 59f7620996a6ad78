// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// fake is a Host whose machines run until a test ends them.
type fake map[string]http.Handler

func (f fake) Boot(id, _ string, metadata http.Handler) (string, error) {
	f[id] = metadata
	return "127.0.0.9", nil
}
func (f fake) IsRunning(id string) bool { return f[id] != nil }
func (f fake) Console(string) string    { return "hello" }
func (f fake) End(id string)            { delete(f, id) }

// ask sends a request, and returns the answer.
func ask(t *testing.T, s *Server, params ...string) string {
	t.Helper()
	in := url.Values{"Version": {version}}
	for i := 0; i < len(params); i += 2 {
		in.Set(params[i], params[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(in.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 …")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Body.String()
}

// TestRequestsKeepTheServiceModel checks that the emulator refuses unknown parameters, wrong values and missing parameters.
func TestRequestsKeepTheServiceModel(t *testing.T) {
	for want, form := range map[string]url.Values{
		"":                      {"Version": {version}, "MinCount": {"1"}, "MaxCount": {"1"}, "TagSpecification.1.Tag.2.Key": {"k"}},
		"InvalidAction":         {"MinCount": {"1"}, "MaxCount": {"1"}},
		"UnknownParameter":      {"Version": {version}, "MinCount": {"1"}, "MaxCount": {"1"}, "UserDate": {"x"}},
		"InvalidParameterValue": {"Version": {version}, "MinCount": {"1"}, "MaxCount": {"1"}, "InstanceInitiatedShutdownBehavior": {"end"}},
		"MissingParameter":      {"Version": {version}, "MinCount": {"1"}},
	} {
		if code, message := Check("RunInstances", form); code != want {
			t.Errorf("got %q (%s), want %q", code, message, want)
		}
	}
}

// TestMachineThatPowersOffEndsItsInstance checks that its instance is terminated or stopped, as its shutdown behavior says.
func TestMachineThatPowersOffEndsItsInstance(t *testing.T) {
	host := fake{}
	s := New(host)
	for behavior, want := range map[string]string{"terminate": terminated, "stop": stopped} {
		ask(t, s, "Action", "RunInstances", "MinCount", "1", "MaxCount", "1", "InstanceInitiatedShutdownBehavior", behavior, "ClientToken", behavior)
		list := []string{"Action", "DescribeInstances", "Filter.1.Name", "client-token", "Filter.1.Value.1", behavior}
		if got := ask(t, s, list...); !strings.Contains(got, "<name>"+running+"</name>") {
			t.Errorf("its machine runs: %s", got)
		}
		clear(host)
		if got := ask(t, s, list...); !strings.Contains(got, "<name>"+want+"</name>") {
			t.Errorf("%s: %s", behavior, got)
		}
	}
}

// TestUserDataNeedAToken checks that the metadata service of an instance answers only requests with one of its tokens.
func TestUserDataNeedAToken(t *testing.T) {
	host := fake{}
	ask(t, New(host), "Action", "RunInstances", "MinCount", "1", "MaxCount", "1", "UserData", "aGVsbG8=")
	get := func(method, path, header, value string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set(header, value)
		w := httptest.NewRecorder()
		for _, metadata := range host {
			metadata.ServeHTTP(w, r)
		}
		return w
	}
	if got := get(http.MethodGet, "/latest/user-data", "X-Aws-Ec2-Metadata-Token", ""); got.Code != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", got.Code, got.Body)
	}
	token := get(http.MethodPut, "/latest/api/token", "X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "60").Body.String()
	if got := get(http.MethodGet, "/latest/user-data", "X-Aws-Ec2-Metadata-Token", token); got.Body.String() != "hello" {
		t.Errorf("with a token: %d %s", got.Code, got.Body)
	}
	if got := get(http.MethodGet, "/latest/meta-data/spot/instance-action", "X-Aws-Ec2-Metadata-Token", token); got.Code != http.StatusNotFound {
		t.Errorf("a page that is not there: %d", got.Code)
	}
}
