// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
)

// TestSecurityA6PathsAreThoseOfAKubelet: each path needs the permission that it needs at a kubelet. There is one
// difference: a path that runs commands needs the verb create.
func TestSecurityA6PathsAreThoseOfAKubelet(t *testing.T) {
	methods := map[string]string{
		http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update",
		http.MethodPatch: "patch", http.MethodDelete: "delete", http.MethodHead: "", http.MethodOptions: "", "get": "",
	}
	for path, want := range map[string]string{
		"/attach/{podNamespace}/{podID}/{containerName}":       "proxy",
		"/attach/{podNamespace}/{podID}/{uid}/{containerName}": "proxy",
		"/checkpoint/{podNamespace}/{podID}/{containerName}":   "checkpoint",
		"/configz":  "configz proxy",
		"/configz/": "configz proxy",
		"/flagz":    "configz",
		"/statusz":  "statusz",
		"/containerLogs/{podNamespace}/{podID}/{containerName}": "proxy",
		"/debug/flags/v":    "proxy",
		"/debug/pprof/heap": "proxy",
		"/exec/{podNamespace}/{podID}/{containerName}":       "proxy",
		"/exec/{podNamespace}/{podID}/{uid}/{containerName}": "proxy",
		"/healthz":                            "healthz proxy",
		"/healthz/log":                        "healthz proxy",
		"/healthz/ping":                       "healthz proxy",
		"/healthz/syncloop":                   "healthz proxy",
		"/readyz":                             "healthz proxy", // a kubelet has neither of the two
		"/livez":                              "healthz proxy",
		"/logs/":                              "log",
		"/logs/some/file":                     "log",
		"/metrics":                            "metrics",
		"/metrics/":                           "metrics",
		"/metrics/slis":                       "metrics",
		"/metrics/cadvisor":                   "metrics",
		"/metrics/probes":                     "metrics",
		"/metrics/resource":                   "metrics",
		"/pods":                               "pods proxy",
		"/pods/":                              "pods proxy",
		"/allocatedPods/ns/p":                 "pods proxy",
		"/portForward/{podNamespace}/{podID}": "proxy",
		"/portForward/{podNamespace}/{podID}/{uid}":         "proxy",
		"/run/{podNamespace}/{podID}/{containerName}":       "proxy",
		"/run/{podNamespace}/{podID}/{uid}/{containerName}": "proxy",
		"/runningpods":      "pods proxy",
		"/runningpods/":     "pods proxy",
		"/stats":            "stats",
		"/stats/":           "stats",
		"/stats/summary":    "stats",
		"/":                 "proxy",
		"/nowhere":          "proxy",
		"/statsx":           "proxy",
		"/STATS":            "proxy",
		"/Pods":             "proxy",
		"/podsx":            "proxy",
		"/healthzx/healthz": "proxy",
	} {
		for method, verb := range methods {
			if slices.Contains(streams, strings.ToLower(firstPart(path))) {
				verb = "create"
			}
			checkAttributes(t, method, path, verb, want)
		}
	}
}

// TestSecurityA6OddPathsNeedEverything: a path that a router might read in another way needs the permission for
// everything.
func TestSecurityA6OddPathsNeedEverything(t *testing.T) {
	for _, path := range []string{
		"", "stats", "*", "//", "//stats", "/stats//summary", "/stats/../exec/ns/p/c", "/./metrics", "/metrics/.", "/metrics/..",
		"/pods/../exec/ns/p/c", "/healthz//", "/../healthz", "/configz/./x", "/logs/../../etc/passwd",
	} {
		checkAttributes(t, http.MethodGet, path, "create", "proxy")
	}
}

// checkAttributes checks that the alternatives have these subresources in this order, and that
// GetRequestAttributes returns the last alternative.
func checkAttributes(t *testing.T, method, path, verb, subresources string) {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	req.Method, req.URL.Path = method, path
	attr, who := NodeRequestAttr{NodeName: "n1"}, &user.DefaultInfo{Name: "alice"}
	all := attr.Alternatives(who, req)
	var got []string
	for _, a := range all {
		got = append(got, a.GetSubresource())
		if a.GetVerb() != verb || a.GetResource() != "nodes" || a.GetName() != "n1" || a.GetNamespace() != "" || a.GetAPIVersion() != "v1" ||
			a.GetAPIGroup() != "" || a.GetUser().GetName() != "alice" || !a.IsResourceRequest() || a.GetPath() != path {
			t.Errorf("%s %q: got %+v, want the verb %q", method, path, a, verb)
		}
	}
	if strings.Join(got, " ") != subresources {
		t.Errorf("%s %q: got %q, want %q", method, path, got, subresources)
	}
	if one := attr.GetRequestAttributes(who, req); one.GetSubresource() != got[len(got)-1] || one.GetVerb() != verb {
		t.Errorf("%s %q: the one permission is %+v, want the last of %q", method, path, one, got)
	}
}
