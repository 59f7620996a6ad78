// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/user"
)

// FuzzPaths: a path that a router could read as a stream route needs the permission for everything, in any spelling. A lesser permission is
// enough only for a path in its plain form.
func FuzzPaths(f *testing.F) {
	for _, p := range []string{
		"/", "/pods", "/pods/", "/healthz", "/stats/summary", "/metrics/cadvisor", "/exec/ns/pod/c", "//exec/ns/pod/c", "/exec/../pods", "/pods/../exec/ns/p/c",
		"/stats/%2e%2e/exec", "/stats/..%2fexec", "/EXEC/ns/p/c", "/run/ns/p/c", "/attach/ns/p/c/", "/portForward/ns/p", "/containerLogs/ns/p/c", "/logs/../run/a/b/c",
		"/metrics/./", "/pods\x00", "pods", "*", "", "/stats//summary", "/healthz;x=/exec", "/pods?x=/exec",
	} {
		f.Add(p, http.MethodGet)
	}
	f.Add("/exec/ns/pod/c", http.MethodPost)
	f.Add("/pods", "FOO")
	f.Fuzz(func(t *testing.T, text, method string) {
		u, err := url.ParseRequestURI(text)
		if err != nil {
			u = &url.URL{Path: text}
		}
		req := &http.Request{Method: method, URL: u, Header: http.Header{}}
		attrs := NodeRequestAttr{NodeName: "n1"}.GetRequestAttributes(&user.DefaultInfo{Name: "u"}, req)
		if attrs.GetResource() != "nodes" || attrs.GetName() != "n1" || !attrs.IsResourceRequest() || attrs.GetSubresource() == "" {
			t.Fatalf("%q: got %+v, want a subresource of the node", text, attrs)
		}
		if attrs.GetSubresource() == "proxy" {
			return
		}
		clean := path.Clean("/" + u.Path)
		if strings.TrimSuffix(u.Path, "/") != clean {
			t.Fatalf("%q: %s is enough for a path that may be read as %s", text, attrs.GetSubresource(), clean)
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(clean, "/"), "/")
		if slices.Contains([]string{"exec", "attach", "portforward", "run", "cri", "containerlogs"}, strings.ToLower(first)) {
			t.Fatalf("%q: %s is enough for a way into a pod", text, attrs.GetSubresource())
		}
	})
}

// FuzzNodeNames: any pattern gives a limited number of node names, all valid and different.
func FuzzNodeNames(f *testing.F) {
	for _, pattern := range []string{"a", "vk-[000-999]", "a[0-9]b[0-9]", "[0-99999999999999999999]", "[0-2147483647]", "[2-1]", "a[", "]a", "[[0-1]-2]", "[-]", "[0-1][0-1][0-1]", "", "a[00-1]"} {
		f.Add(pattern, "b")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		names, err := NodeNames(first, second)
		if err != nil {
			return
		}
		if len(names) > maxFleet {
			t.Fatalf("%q, %q: %d names", first, second, len(names))
		}
		seen := map[string]bool{}
		for _, name := range names {
			if seen[name] || len(validation.IsDNS1123Subdomain(name)) > 0 {
				t.Fatalf("%q, %q: the name %q is wrong, or there twice", first, second, name)
			}
			seen[name] = true
		}
	})
}
