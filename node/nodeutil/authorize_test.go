// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// statusOf returns the status of a request that auth judges, and checks that InstrumentAuth does not change the
// status.
func statusOf(t *testing.T, auth Auth, req *http.Request) int {
	t.Helper()
	w := httptest.NewRecorder()
	WithAuth(auth, hello).ServeHTTP(w, req.Clone(t.Context()))
	instrumented := httptest.NewRecorder()
	WithAuth(InstrumentAuth(auth), hello).ServeHTTP(instrumented, req.Clone(t.Context()))
	if w.Code != instrumented.Code {
		t.Errorf("%s %s: got %d, with spans %d", req.Method, req.URL, w.Code, instrumented.Code)
	}
	return w.Code
}

func webhook(t *testing.T, api *reviews, opts ...WebhookAuthOption) Auth {
	t.Helper()
	auth, err := WebhookAuth(api.client, "n1", append(opts, once)...)
	if err != nil {
		t.Fatal(err)
	}
	return auth
}

// TestSecurityA7StreamsNeedCreate: permission to read everything of a node opens no stream. The method of a
// WebSocket request is GET, so the verb of the method would be too weak.
func TestSecurityA7StreamsNeedCreate(t *testing.T) {
	api := newReviews(t)
	api.allow = func(who string, what authorizationv1.ResourceAttributes) bool {
		return what.Resource == "nodes" && what.Name == "n1" &&
			(who == "reader" && what.Verb == "get" || who == "writer" && what.Verb == "create" && what.Subresource == "proxy")
	}
	auth := webhook(t, api)
	for _, path := range []string{
		"/exec/ns/p/c?command=id", "/exec/ns/p/uid/c", "/exec/ns/p/c/", "/attach/ns/p/c", "/attach/ns/p/uid/c", "/portForward/ns/p",
		"/portForward/ns/p/uid", "/run/ns/p/c", "/run/ns/p/uid/c", "/EXEC/ns/p/c", "/portforward/ns/p", "/exec", "/exec/",
		"//exec/ns/p/c", "/pods/../exec/ns/p/c", "/./exec/ns/p/c", "/%65xec/ns/p/c", "/metrics%2f..%2fexec/ns/p/c",
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodPost, "EXEC"} {
			if got := statusOf(t, auth, request(method, path, "reader")); got != http.StatusForbidden {
				t.Errorf("%s %s by one who may get: got %d, want 403", method, path, got)
			}
			if got := statusOf(t, auth, request(method, path, "writer")); got != http.StatusOK {
				t.Errorf("%s %s by one who may create: got %d, want 200", method, path, got)
			}
		}
	}
	for _, path := range []string{"/", "/prefix/exec/ns/p/c", "/containerLogs/ns/p/c", "/pods", "/metrics"} {
		upgrade := request(http.MethodGet, path, "reader")
		if got := statusOf(t, auth, upgrade); got != http.StatusOK {
			t.Errorf("GET %s by one who may get: got %d, want 200", path, got)
		}
		upgrade.Header.Set("Connection", "keep-alive, Upgrade")
		if got := statusOf(t, auth, upgrade); got != http.StatusForbidden {
			t.Errorf("GET %s with an upgrade by one who may get: got %d, want 403", path, got)
		}
	}
}

// TestSecurityA8PodPermissionsAreAskedForWhenTold: with ReviewPods, a user with every permission on the node
// also needs permissions on the pod. The user of this test has them in one namespace.
func TestSecurityA8PodPermissionsAreAskedForWhenTold(t *testing.T) {
	api := newReviews(t)
	api.allow = func(who string, what authorizationv1.ResourceAttributes) bool {
		return who == "operator" && (what.Resource == "nodes" || what.Resource == "pods" && what.Namespace == "mine" && what.Name == "p" && what.Version == "v1")
	}
	off := webhook(t, api)
	on := webhook(t, api, func(cfg *WebhookAuthConfig) error {
		cfg.ReviewPods = true
		return nil
	})
	for _, tc := range []struct{ path, permission string }{
		{"/exec/%s/p/c", "create exec"},
		{"/exec/%s/p/uid/c", "create exec"},
		{"/run/%s/p/c", "create exec"},
		{"/attach/%s/p/c", "create attach"},
		{"/portForward/%s/p", "create portforward"},
		{"/portForward/%s/p/uid", "create portforward"},
		{"/containerLogs/%s/p/c", "get log"},
	} {
		for namespace, want := range map[string]int{"mine": http.StatusOK, "other": http.StatusForbidden} {
			req := request(http.MethodGet, strings.Replace(tc.path, "%s", namespace, 1), "operator")
			if got := statusOf(t, off, req); got != http.StatusOK {
				t.Errorf("%s, not told: got %d, want 200", req.URL, got)
			}
			if got := statusOf(t, on, req); got != want {
				t.Errorf("%s: got %d, want %d", req.URL, got, want)
			}
			if want := tc.permission + " " + namespace; !slices.ContainsFunc(api.accesses, func(asked authorizationv1.ResourceAttributes) bool {
				return asked.Resource == "pods" && asked.Name == "p" && asked.Verb+" "+asked.Subresource+" "+asked.Namespace == want
			}) {
				t.Errorf("%s: nobody asked for %s", req.URL, want)
			}
		}
	}
	upgrade := request(http.MethodGet, "/prefix/exec/mine/p/c", "operator")
	upgrade.Header.Set("Connection", "Upgrade")
	for _, req := range []*http.Request{upgrade, request("POST", "/exec/mine", "operator"), request("POST", "/EXEC/mine/p/c", "operator"), request("POST", "//exec/mine/p/c", "operator")} {
		if got := statusOf(t, on, req); got != http.StatusForbidden {
			t.Errorf("%s, whose pod cannot be told: got %d, want 403", req.URL, got)
		}
	}
	for _, path := range []string{"/pods", "/metrics", "/healthz", "/"} {
		if got := statusOf(t, on, request("GET", path, "operator")); got != http.StatusOK {
			t.Errorf("%s: got %d, want 200", path, got)
		}
	}
}

// severalAuth requires the permissions in its lists.
type severalAuth struct {
	scriptedAuth
	needed [][]authorizer.Attributes
}

func (a *severalAuth) GetRequestPermissions(user.Info, *http.Request) [][]authorizer.Attributes {
	return a.needed
}

func (a *severalAuth) Authorize(_ context.Context, attrs authorizer.Attributes) (authorizer.Decision, string, error) {
	switch attrs.GetVerb() {
	case "yes":
		return authorizer.DecisionAllow, "", nil
	case "error":
		return authorizer.DecisionAllow, "", errors.New("boom")
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// TestSecurityA5OnlyAnAllowPasses: a request passes if at least one permission of each list is allowed. It never
// passes because there is no list, or because a list is empty.
func TestSecurityA5OnlyAnAllowPasses(t *testing.T) {
	list := func(verbs ...string) (all []authorizer.Attributes) {
		for _, verb := range verbs {
			all = append(all, authorizer.AttributesRecord{Verb: verb})
		}
		return all
	}
	for name, tc := range map[string]struct {
		needed [][]authorizer.Attributes
		want   int
	}{
		"no lists":                 {nil, 403},
		"an empty list":            {[][]authorizer.Attributes{{}}, 403},
		"an empty list after one":  {[][]authorizer.Attributes{list("yes"), nil}, 403},
		"one":                      {[][]authorizer.Attributes{list("yes")}, 200},
		"none":                     {[][]authorizer.Attributes{list("no")}, 403},
		"the first":                {[][]authorizer.Attributes{list("yes", "no")}, 200},
		"the second":               {[][]authorizer.Attributes{list("no", "yes")}, 200},
		"the second, after errors": {[][]authorizer.Attributes{list("error", "yes")}, 200},
		"allowed with an error":    {[][]authorizer.Attributes{list("error")}, 500},
		"an error and a no":        {[][]authorizer.Attributes{list("error", "no")}, 500},
		"one of two":               {[][]authorizer.Attributes{list("yes"), list("no")}, 403},
		"the other of two":         {[][]authorizer.Attributes{list("no"), list("yes")}, 403},
		"both":                     {[][]authorizer.Attributes{list("yes"), list("yes")}, 200},
		"one and an error":         {[][]authorizer.Attributes{list("yes"), list("error")}, 500},
	} {
		if got := statusOf(t, &severalAuth{needed: tc.needed}, request("GET", "/", "")); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}
