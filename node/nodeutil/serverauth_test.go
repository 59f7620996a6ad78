// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// serverConfig returns a configuration with a certificate of ca and no handler.
func serverConfig(t *testing.T, ca *testpki.Authority, opts ...NodeOpt) *NodeConfig {
	t.Helper()
	cfg := &NodeConfig{}
	for _, opt := range append([]NodeOpt{WithTLSConfig(WithKeyPairFromPath(ca.Issue(t, "n1")))}, opts...) {
		if err := opt(cfg); err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}

// nodeMux returns the mux of a program: the provider's routes at "/", and a route of the program.
func nodeMux() *http.ServeMux {
	mux := http.NewServeMux()
	authMux{mux}.Handle("/", hello)
	mux.Handle("/own", hello)
	return mux
}

// middleware is a wrapper without Unwrap, so it hides the wrapped handler.
func middleware(h http.Handler) http.Handler {
	return http.HandlerFunc(h.ServeHTTP)
}

// showing is a wrapper with Unwrap.
type showing struct{ http.Handler }

func (s showing) Unwrap() http.Handler { return s.Handler }

func TestSecurityA3NoServerWithoutAuthenticationByAccident(t *testing.T) {
	ca := testpki.New(t)
	reviews := newReviews(t)
	webhook, err := WebhookAuth(reviews.client, "n1", once)
	if err != nil {
		t.Fatal(err)
	}
	byWebhook := map[string]int{"": 401, "bad": 401, "bob": 403, "root": 200}
	everybody := map[string]int{"": 200, "bad": 200, "bob": 200}

	for _, tc := range []struct {
		name    string
		handler func(mux http.Handler) http.Handler
		noMux   bool // the program does not use AttachProviderRoutes
		opts    []NodeOpt
		want    map[string]int // status of a provider route, by token
		own     map[string]int // status of the program's own route, by token
	}{
		{name: "bare mux", handler: func(mux http.Handler) http.Handler { return mux }, want: byWebhook, own: byWebhook},
		{name: "bare handler", noMux: true, handler: func(http.Handler) http.Handler { return hello }, want: byWebhook, own: byWebhook},
		{name: "mux behind middleware", handler: middleware, want: byWebhook, own: everybody},
		{name: "WithAuth", handler: func(mux http.Handler) http.Handler { return WithAuth(webhook, mux) }, want: byWebhook, own: byWebhook},
		{name: "WithAuth behind middleware", handler: func(mux http.Handler) http.Handler { return middleware(WithAuth(webhook, mux)) }, want: byWebhook, own: byWebhook},
		{name: "WithAuth behind middleware, no mux", noMux: true, handler: func(http.Handler) http.Handler { return middleware(WithAuth(webhook, hello)) }, want: byWebhook},
		{name: "WithAuth behind a wrapper that shows it", noMux: true, handler: func(http.Handler) http.Handler { return showing{WithAuth(NoAuth(), hello)} }, want: everybody},
		{name: "instrumented NoAuth", handler: func(mux http.Handler) http.Handler { return api.InstrumentHandler(WithAuth(NoAuth(), mux)) }, want: everybody, own: everybody},
		{name: "NoAuth", handler: func(mux http.Handler) http.Handler { return WithAuth(NoAuth(), mux) }, want: everybody, own: everybody},
		{name: "asked for by name", handler: func(mux http.Handler) http.Handler { return mux }, opts: []NodeOpt{WithInsecureUnauthenticatedServer()}, want: everybody, own: everybody},
	} {
		mux := nodeMux()
		cfg := serverConfig(t, ca, tc.opts...)
		cfg.Handler = tc.handler(mux)
		if !tc.noMux {
			cfg.mux = mux
		}
		s := serve(t, cfg, reviews, &lineLogger{})
		client := clientOf(ca.ClientConfig(t, nil, ""))
		for path, want := range map[string]map[string]int{"/pods": tc.want, "/own": tc.own} {
			for token, want := range want {
				if got, _ := fetch(t, client, s.url+path, token); got != want {
					t.Errorf("%s: %s with token %q: got %d, want %d", tc.name, path, token, got, want)
				}
			}
		}
		s.end(t)
	}
}

// TestSecurityA3NoPathGetsAround: no spelling of a path reaches the provider without credentials. Routers read
// these spellings in different ways, and an http.ServeMux answers some of them with a redirect.
func TestSecurityA3NoPathGetsAround(t *testing.T) {
	ca := testpki.New(t)
	cfg := serverConfig(t, ca)
	mux := http.NewServeMux()
	reached := func(w http.ResponseWriter, req *http.Request) { t.Errorf("%s reached the provider", req.URL) }
	authMux{mux}.Handle("/", http.HandlerFunc(reached))
	cfg.mux, cfg.Handler = mux, middleware(mux)
	s := serve(t, cfg, newReviews(t), &lineLogger{})
	client := clientOf(ca.ClientConfig(t, nil, ""))
	for _, path := range []string{
		"/", "/pods", "/pods/", "/runningpods/", "//exec/ns/p/c", "/exec/../pods", "/%2e%2e/exec", "/EXEC/ns/p/c",
		"/exec/ns/p/c?command=id", "/stats/../exec/ns/p/c", "/metrics", "/healthz", "/%00", "/;/exec", "/.",
	} {
		if got, _ := fetch(t, client, s.url+path, ""); got != 401 {
			t.Errorf("%s without credentials: got %d, want 401", path, got)
		}
	}
}

func TestSecurityA4CertificatesAndTokensSideBySide(t *testing.T) {
	ca, other := testpki.New(t), testpki.New(t)
	expired := &testpki.Authority{} // stands for an authority whose certificates have expired
	for _, tc := range []struct {
		name  string
		opt   NodeOpt
		by    *testpki.Authority
		as    string
		token string
		want  int
	}{
		{name: "allowed", by: ca, as: "root", want: 200},
		{name: "not allowed", by: ca, as: "bob", want: 403},
		{name: "of another authority", by: other, as: "root", want: 401},
		{name: "of another authority, with a token", by: other, as: "root", token: "root", want: 200},
		{name: "token only", token: "root", want: 200},
		{name: "expired", by: expired, as: "root", want: 401},
		{name: "expired, with a token", by: expired, as: "root", token: "root", want: 200},
		{name: "neither", want: 401},
		{name: "allowed, with a token of nobody", by: ca, as: "root", token: "bad", want: 200},
		{name: "required: expired", opt: requireCert, by: expired, as: "root", want: 0},
		{name: "required: allowed", opt: requireCert, by: ca, as: "root", want: 200},
		{name: "required: not allowed", opt: requireCert, by: ca, as: "bob", want: 403},
		{name: "required: none", opt: requireCert, want: 0},
		{name: "required: of another authority", opt: requireCert, by: other, as: "root", want: 0},
	} {
		opts := []NodeOpt{WithTLSConfig(WithCACert(ca.PEM))}
		if tc.opt != nil {
			opts = append(opts, tc.opt)
		}
		cfg := serverConfig(t, ca, opts...)
		cfg.Handler = nodeMux()
		s := serve(t, cfg, newReviews(t), &lineLogger{})
		clientTLS := ca.ExpiredConfig(t, tc.as)
		if tc.by != expired {
			clientTLS = ca.ClientConfig(t, tc.by, tc.as)
		}
		if got, text := fetch(t, clientOf(clientTLS), s.url+"/pods", tc.token); got != tc.want {
			t.Errorf("%s: got %d (%s), want %d", tc.name, got, text, tc.want)
		}
		s.end(t)
	}
}

// TestMuxOnAnotherServer: a mux that the program serves itself is not guarded.
func TestMuxOnAnotherServer(t *testing.T) {
	w := httptest.NewRecorder()
	nodeMux().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/pods", nil))
	if w.Code != http.StatusOK {
		t.Errorf("got %d, want 200: that server is not ours to guard", w.Code)
	}
}

func TestSameValue(t *testing.T) {
	mux := http.NewServeMux()
	if !sameValue(http.Handler(mux), api.ServeMux(mux)) || sameValue(mux, http.NewServeMux()) ||
		sameValue(hello, hello) || sameValue(nil, nil) {
		t.Error("sameValue is true for the same pointer only")
	}
}

// TestSecurityA8ReviewsThatNobodyWouldMake: newServer refuses ReviewPods where no authentication would use it.
func TestSecurityA8ReviewsThatNobodyWouldMake(t *testing.T) {
	ca := testpki.New(t)
	for name, opts := range map[string][]NodeOpt{
		"another authentication": {func(cfg *NodeConfig) error { cfg.Handler = WithAuth(NoAuth(), hello); return nil }},
		"none":                   {func(cfg *NodeConfig) error { cfg.Handler = hello; return nil }, WithInsecureUnauthenticatedServer()},
	} {
		cfg := serverConfig(t, ca, append(opts, WithPodReviews())...)
		if _, err := newServer(cfg, newReviews(t).client, "n1"); err == nil || !strings.Contains(err.Error(), "ReviewPods") {
			t.Errorf("%s: got error %v, want one that says what to do", name, err)
		}
	}
	cfg := serverConfig(t, ca, func(cfg *NodeConfig) error { cfg.Handler = hello; return nil }, WithPodReviews())
	if _, err := newServer(cfg, newReviews(t).client, "n1"); err != nil {
		t.Errorf("the authentication of NewNode: %v", err)
	}
}

// TestCallerReachesTheRoutes: the routes of package api know the user of a request, and so their records can
// name the user.
func TestCallerReachesTheRoutes(t *testing.T) {
	var got api.Caller
	h := WithAuth(NoAuth(), http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { got, _ = api.CallerFrom(req.Context()) }))
	h.ServeHTTP(nil, must(http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)))
	if got.Name != "system:anonymous" || !slices.Equal(got.Groups, []string{"system:unauthenticated"}) {
		t.Errorf("got %+v, want nobody", got)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
