// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/mux"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
)

// authenticatedNode returns a node that serves every route and has not been run. Its server has the handler that
// wrap returns for the mux of the routes.
func authenticatedNode(t *testing.T, r *reviews, wrap func(http.Handler) http.Handler) *Node {
	t.Helper()
	ca := testpki.New(t)
	routes := http.NewServeMux()
	n, err := NewNode("n1", newMemory().asProvider, WithClient(r.client), WithTLSConfig(WithKeyPairFromPath(ca.Issue(t, "n1"))),
		AttachProviderRoutes(routes), func(cfg *NodeConfig) error {
			cfg.EnableProfiling, cfg.Flags, cfg.Handler = true, map[string]string{}, wrap(routes)
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ask sends req to the server of n.
func (n *Node) ask(req *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	n.server.handler.ServeHTTP(w, req.WithContext(withRouteAuth(req.Context(), n.server.routeAuth)))
	return w
}

// servedPaths returns a path for each route of the node, as listed by the router itself.
func servedPaths(t *testing.T, n *Node) []string {
	t.Helper()
	handler := n.handler()
	for {
		wrapper, ok := handler.(interface{ Unwrap() http.Handler })
		if !ok {
			break
		}
		handler = wrapper.Unwrap()
	}
	routes, ok := handler.(interface{ Walk(mux.WalkFunc) error })
	if !ok {
		t.Fatalf("%T shows no routes", handler)
	}
	var paths []string
	err := routes.Walk(func(route *mux.Route, _ *mux.Router, _ []*mux.Route) error {
		path, err := route.GetPathTemplate()
		if !strings.HasSuffix(path, "/") { // each route exists with and without a trailing slash
			paths = append(paths, strings.NewReplacer("{", "", "}", "").Replace(path))
		}
		return err
	})
	if err != nil || len(paths) < 20 {
		t.Fatalf("only %d routes were found: %v", len(paths), err)
	}
	return paths
}

// spellings returns several ways to write a path. A router takes some of them for the path itself.
func spellings(path string) []string {
	parts := strings.SplitN(path, "/", 3)
	first, rest := parts[1], strings.Join(parts[2:], "/")
	return []string{
		path, strings.TrimSuffix(path, "/"), path + "/", path + "//", "/" + path, "//" + path, "/." + path, "/x/.." + path, "/../" + path, path + "/.", path + "/../" + first,
		"/pods/.." + path, "/healthz/..//" + path, strings.ToUpper(path), "/" + strings.ToUpper(first[:1]) + first[1:] + "/" + rest,
		"/%2e%2e" + path, "/%2e" + path, "/%2f" + path, "/" + first + "%2f" + rest, fmt.Sprintf("/%%%02x%s/%s", first[0], first[1:], rest),
		path + "%00", path + ";x=1", path + "?x=1", path + "%20", "/%5c" + path, "http://other.example" + path, strings.TrimPrefix(path, "/"),
	}
}

var allMethods = []string{
	http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions,
	http.MethodTrace, http.MethodConnect, "get", "EXEC",
}

func requestFor(method, target string) *http.Request {
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	parsed, err := url.ParseRequestURI(target)
	if err != nil {
		parsed = &url.URL{Path: target}
	}
	req.Method, req.URL, req.RequestURI = method, parsed, target
	return req
}

// TestSecurityA2EveryPathAsksForCredentials walks the router of a node: a new route is tried too.
func TestSecurityA2EveryPathAsksForCredentials(t *testing.T) {
	r := newReviews(t)
	for name, wrap := range map[string]func(http.Handler) http.Handler{
		"bare":              func(h http.Handler) http.Handler { return h },
		"behind middleware": middleware,
		"with auth":         func(h http.Handler) http.Handler { return middleware(WithAuth(webhook(t, r), h)) },
	} {
		n := authenticatedNode(t, r, wrap)
		tried := 0
		for _, path := range append(servedPaths(t, n), "/nowhere", "/run/ns/p/c", "/logs/x", "/checkpoint/ns/p/c", "/debug/flags/v") {
			for _, target := range append(spellings(path), "/", "*", "") {
				for _, method := range allMethods {
					req := requestFor(method, target)
					if w := n.ask(req); w.Code != http.StatusUnauthorized || w.Body.String() != "Unauthorized\n" {
						t.Fatalf("%s: %s %q without credentials: got %d %q to %q, want 401", name, method, target, w.Code, w.Body, w.Header().Get("Location"))
					}
					tried++
				}
			}
		}
		if tried < 10000 {
			t.Errorf("%s: only %d requests were tried", name, tried)
		}
	}
	if r.tokens != 0 || len(r.accesses) != 0 {
		t.Errorf("the API server was asked %d times about nobody", r.tokens+len(r.accesses))
	}
}

// TestSecurityA3OddPathsReachNoHandler: an odd path reaches no handler, even for a user with every permission.
func TestSecurityA3OddPathsReachNoHandler(t *testing.T) {
	reached := ""
	n := authenticatedNode(t, newReviews(t), func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			reached = req.URL.Path
			h.ServeHTTP(w, req)
		})
	})
	for _, path := range servedPaths(t, n) {
		for _, target := range spellings(path) {
			req := requestFor(http.MethodGet, target)
			if isPlain(req.URL.Path) {
				continue
			}
			req.Header.Set("Authorization", "Bearer root")
			if w := n.ask(req); w.Code != http.StatusNotFound || reached != "" {
				t.Fatalf("%q: got %d, and %q reached the handler; want 404", target, w.Code, reached)
			}
		}
	}
}

// TestSecurityE9ProfilesAreOffAndGuarded requests the profiles with and without the permission, and with and
// without the setting.
func TestSecurityE9ProfilesAreOffAndGuarded(t *testing.T) {
	n := authenticatedNode(t, newReviews(t), func(h http.Handler) http.Handler { return h })
	for _, on := range []bool{false, true} {
		n.common.EnableProfiling = on
		n.server.handler = WithAuth(n.server.routeAuth, n.handler())
		for token, want := range map[string]int{"": 401, "bob": 403, "root": map[bool]int{false: 501, true: 200}[on]} {
			for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/goroutine?debug=2"} {
				if w := n.ask(request(http.MethodGet, path, token)); w.Code != want {
					t.Errorf("profiling %v: %s by %q: got %d, want %d", on, path, token, w.Code, want)
				}
			}
		}
	}
	w := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/pprof/", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("http.DefaultServeMux has profiles: a program that serves it shows them to everybody")
	}
}

// TestSecurityE10SeriesAreBounded: ten thousand paths with random methods, requested with and without
// credentials, make a limited number of series.
func TestSecurityE10SeriesAreBounded(t *testing.T) {
	n := authenticatedNode(t, newReviews(t), func(h http.Handler) http.Handler { return h })
	paths := servedPaths(t, n)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // The same each time.
	ask := func() {
		path := paths[random.IntN(len(paths))]
		if strings.HasSuffix(strings.TrimSuffix(path, "/"), "/profile") {
			path = "/pods" // a profile takes time
		}
		if random.IntN(2) == 0 {
			path += fmt.Sprintf("/%x", random.Uint64())
		}
		method := allMethods[random.IntN(len(allMethods))]
		if random.IntN(4) == 0 {
			method = fmt.Sprintf("M%x", random.Uint32())
		}
		token := []string{"", "bob", "root"}[random.IntN(3)]
		if random.IntN(100) == 0 {
			token = "bad" // each such request asks the API server
		}
		n.ask(request(method, path, token))
	}
	for range 1000 {
		ask()
	}
	before := series(t)
	for range 10000 {
		ask()
	}
	if after := series(t); !slices.Equal(before, after) {
		t.Errorf("%d series have become %d", len(before), len(after))
	}
}

// series returns the name and labels of every series of the process.
func series(t *testing.T) []string {
	t.Helper()
	var all []string
	own, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range slices.Concat(own, libraries) {
		for _, metric := range family.Metric {
			all = append(all, fmt.Sprint(family.GetName(), metric.Label))
		}
	}
	slices.Sort(all)
	return all
}
