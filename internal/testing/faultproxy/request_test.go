// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for path, want := range map[string]string{
		"GET /api/v1/pods?limit=5":                                       "list pods///",
		"GET /api/v1/pods?watch=true":                                    "watch pods///",
		"GET /api/v1/namespaces/a/pods/b":                                "get pods/a/b/",
		"PATCH /api/v1/namespaces/a/pods/b/status":                       "patch pods/a/b/status",
		"DELETE /api/v1/namespaces/a/pods":                               "deletecollection pods/a//",
		"DELETE /api/v1/namespaces/a/pods/b":                             "delete pods/a/b/",
		"POST /api/v1/namespaces/a/events":                               "create events/a//",
		"PUT /apis/coordination.k8s.io/v1/namespaces/l/leases/n":         "update leases/l/n/",
		"GET /apis/coordination.k8s.io/v1/namespaces/l/leases?watch=1&x": "watch leases/l//",
		"PATCH /api/v1/nodes/n/status":                                   "patch nodes//n/status",
		"GET /api/v1/namespaces/a":                                       "get namespaces//a/",
		"PUT /api/v1/namespaces/a/status":                                "update namespaces//a/status",
		"GET /version":                                                   "list ///",
		"GET /apis":                                                      "list ///",
	} {
		method, url, _ := strings.Cut(path, " ")
		r := parseRequest(httptest.NewRequestWithContext(t.Context(), method, url, http.NoBody))
		if got := r.Verb + " " + strings.Join([]string{r.Resource, r.Namespace, r.Name, r.Subresource}, "/"); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
