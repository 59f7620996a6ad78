// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	gophercloudopenstack "github.com/gophercloud/gophercloud/v2/openstack"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// cloud is Keystone with one token at a time, and a service.
type cloud struct {
	url      string
	logins   int
	refuses  int  // the status of logins; 0: they succeed
	ended    bool // the token has ended
	password string
	answer   func(w http.ResponseWriter)
}

// ServeHTTP implements http.Handler.
func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/auth/tokens"):
		c.logins++
		if body, _ := io.ReadAll(r.Body); c.refuses != 0 || !strings.Contains(string(body), c.password) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(max(c.refuses, http.StatusUnauthorized))
			fmt.Fprint(w, `{"error":{"message":"Could not find Application Credential: app-1.","code":404}}`)
			return
		}
		c.ended = false
		w.Header().Set("X-Subject-Token", fmt.Sprint("token-", c.logins))
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"token":{"expires_at":"2100-01-01T00:00:00.000000Z","catalog":[{"type":"container","endpoints":[{"interface":"public","region":"R","url":%q}]}]}}`, c.url+"/v1/")
	case c.ended:
		w.WriteHeader(http.StatusUnauthorized)
	default:
		c.answer(w)
	}
}

// open returns a client of a new cloud.
func open(t *testing.T) (*cloud, *Client) {
	t.Helper()
	c := &cloud{password: "first", answer: func(w http.ResponseWriter) { fmt.Fprint(w, `{"id":"a"}`) }}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c, &Client{
		Name: "Zun", Type: "container", Microversion: "1.40", Find: gophercloudopenstack.NewContainerV1, HTTP: http.Client{CheckRedirect: NoRedirect},
		Login: func(context.Context) (Login, error) {
			return Login{
				Credentials: gophercloud.AuthOptions{IdentityEndpoint: server.URL + "/v3", Username: "u", Password: c.password, DomainName: "Default"},
				Endpoint:    gophercloud.EndpointOpts{Region: "R", Availability: gophercloud.AvailabilityPublic},
			}, nil
		},
	}
}

// TestLoginIsRepeatedWithPresentCredentials checks that an expired token causes one login, and no error.
func TestLoginIsRepeatedWithPresentCredentials(t *testing.T) {
	c, client := open(t)
	var answer struct{ ID string }
	for range 2 {
		if _, err := client.Call(t.Context(), http.MethodGet, "things", nil, nil, &answer); err != nil || answer.ID != "a" {
			t.Fatal(answer, err)
		}
	}
	c.ended, c.password = true, "second"
	read := func(body io.Reader) error { _, err := io.Copy(io.Discard, body); return err }
	if _, err := client.Call(t.Context(), http.MethodGet, "things", nil, nil, read); err != nil || c.logins != 2 {
		t.Errorf("%d logins, %v; want a second one", c.logins, err)
	}
}

// TestFailedLoginIsNoAnswer checks each status of Keystone. None counts as a response of the service, and none of the requests was sent.
func TestFailedLoginIsNoAnswer(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		c, client := open(t)
		c.refuses = status
		_, err := client.Call(t.Context(), http.MethodGet, "things", url.Values{"name": {"secret"}}, nil, nil)
		if StatusOf(err) != 0 || errdefs.IsNotFound(err) || !NotSent(err) || !strings.Contains(fmt.Sprint(err), "Could not find Application Credential: app-1.") || strings.Contains(err.Error(), "first") {
			t.Errorf("%d: got %v, an answer: %d, not sent: %t", status, err, StatusOf(err), NotSent(err))
		}
		want := 7 * time.Second // that of Keystone
		if status == http.StatusTooManyRequests {
			want = throttledFor
		}
		if after, says := errdefs.RetryAfterOf(err); !says || after != want {
			t.Errorf("%d: try again after %s, want %s", status, after, want)
		}
	}
	_, client := open(t)
	client.Login = func(context.Context) (Login, error) {
		return Login{Credentials: gophercloud.AuthOptions{IdentityEndpoint: "http://127.0.0.1:1/v3", Username: "u", Password: "p", DomainName: "Default"}}, nil
	}
	if _, err := client.Call(t.Context(), http.MethodGet, "things", nil, nil, nil); !NotSent(err) || StatusOf(err) != 0 {
		t.Errorf("nobody listens: got %v, not sent: %t", err, NotSent(err))
	}
}

// TestRefusalsHaveTheirReason checks the formats of service errors.
func TestRefusalsHaveTheirReason(t *testing.T) {
	for body, want := range map[string]string{
		`{"errors":[{"detail":"too large","title":"Bad Request"}]}`: "400 Bad Request: too large (request r-1)",
		`{"errors":[{"title":"no such field"}]}`:                    "400 Bad Request: no such field (request r-1)",
		`{"badRequest":{"message":"no such flavor","code":400}}`:    "400 Bad Request: no such flavor (request r-1)",
		`{"errors":[]}`: "400 Bad Request (request r-1)",
		`<html>`:        "400 Bad Request (request r-1)",
	} {
		c, client := open(t)
		c.answer = func(w http.ResponseWriter) {
			w.Header().Set("X-Openstack-Request-Id", "r-1")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, body)
		}
		_, err := client.Call(t.Context(), http.MethodPost, "things", nil, map[string]string{"password": "secret"}, nil)
		if fmt.Sprint(err) != want || StatusOf(err) != http.StatusBadRequest || NotSent(err) {
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
	}
}
