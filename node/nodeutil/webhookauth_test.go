// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// reviews is an API server that only answers reviews of tokens and permissions. The token is the user's name;
// the token "bad" is invalid. The user "root" has every permission.
type reviews struct {
	url    string
	client *kubernetes.Clientset
	close  func()

	mu       sync.Mutex
	allow    func(user string, what authorizationv1.ResourceAttributes) bool // nil: only root is allowed
	down     bool                                                            // every review fails
	tokens   int
	accesses []authorizationv1.ResourceAttributes
}

func newReviews(t *testing.T) *reviews {
	t.Helper()
	r := &reviews{}
	srv := httptest.NewServer(r.handler())
	r.url = srv.URL
	r.close = func() {
		srv.CloseClientConnections()
		srv.Close()
	}
	t.Cleanup(r.close)
	var err error
	if r.client, err = kubernetes.NewForConfig(&rest.Config{Host: srv.URL}); err != nil {
		t.Fatal(err)
	}
	return r
}

// newReviewsInMemory is newReviews without a network, for fake time.
func newReviewsInMemory(t *testing.T) *reviews {
	t.Helper()
	r := &reviews{}
	handler := r.handler()
	transport := roundTripFunc(func(req *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		return w.Result(), nil
	})
	var err error
	if r.client, err = kubernetes.NewForConfig(&rest.Config{Host: "http://reviews", Transport: transport}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *reviews) handler() http.Handler {
	mux := http.NewServeMux()
	handleReview(r, mux, "/apis/authentication.k8s.io/v1/tokenreviews", func(review *authenticationv1.TokenReview) {
		r.tokens++
		if review.Spec.Token != "bad" {
			review.Status.Authenticated = true
			review.Status.User = authenticationv1.UserInfo{Username: review.Spec.Token}
		}
	})
	handleReview(r, mux, "/apis/authorization.k8s.io/v1/subjectaccessreviews", func(review *authorizationv1.SubjectAccessReview) {
		r.accesses = append(r.accesses, *review.Spec.ResourceAttributes)
		review.Status.Allowed = review.Spec.User == "root" || r.allow != nil && r.allow(review.Spec.User, *review.Spec.ResourceAttributes)
	})
	return mux
}

func handleReview[T any](r *reviews, mux *http.ServeMux, path string, answer func(*T)) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		review := new(T)
		err := json.NewDecoder(req.Body).Decode(review)
		if err != nil || r.down {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		answer(review)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	})
}

func (r *reviews) setDown() { r.set(func() { r.down = true }) }

func (r *reviews) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func request(method, path, token string) *http.Request {
	req := httptest.NewRequest(method, path, nil)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req
}

// once turns off the retries of failed reviews.
func once(cfg *WebhookAuthConfig) error {
	cfg.AuthnConfig.WebhookRetryBackoff = &wait.Backoff{Steps: 1}
	cfg.AuthzConfig.WebhookRetryBackoff = &wait.Backoff{Steps: 1}
	return nil
}

// TestReviewsHaveTheirOwnLimits: reviews get through when the limit of the client is used up. Clients with bad
// tokens must not hold up the requests for pods, and requests for pods must not hold up reviews.
func TestReviewsHaveTheirOwnLimits(t *testing.T) {
	api := newReviews(t)
	exhausted := &rest.Config{Host: api.url, RateLimiter: flowcontrol.NewFakeNeverRateLimiter()}
	client, err := kubernetes.NewForConfig(exhausted)
	if err != nil {
		t.Fatal(err)
	}
	auth, err := WebhookAuth(client, "n1", once)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	w := httptest.NewRecorder()
	WithAuth(auth, hello).ServeHTTP(w, request("GET", "/pods", "root").WithContext(ctx))
	if w.Code != http.StatusOK {
		t.Errorf("got %d, want 200 although nothing else gets through", w.Code)
	}
}

func TestSecurityA5KnownAnswersSurviveAndNothingNewGetsIn(t *testing.T) {
	api := newReviews(t)
	auth, err := WebhookAuth(api.client, "n1", once)
	if err != nil {
		t.Fatal(err)
	}
	status := func(method, path, token string) int {
		w := httptest.NewRecorder()
		WithAuth(auth, hello).ServeHTTP(w, request(method, path, token))
		return w.Code
	}

	for range 3 {
		for token, want := range map[string]int{"": 401, "bad": 401, "root": 200, "bob": 403} {
			if got := status("GET", "/stats/summary", token); got != want {
				t.Errorf("token %q: got %d, want %d", token, got, want)
			}
		}
	}
	if len(api.accesses) != 2 {
		t.Fatalf("permissions asked for %d times, want 2: one allowed and one denied, then from the cache", len(api.accesses))
	}
	want := authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "nodes", Subresource: "stats", Name: "n1"}
	if api.accesses[0] != want {
		t.Errorf("permission: got %+v, want %+v", api.accesses[0], want)
	}

	// Known answers stay valid while the API server is away. Unknown users get no access.
	api.setDown()
	for _, tc := range []struct {
		path, token string
		want        int
	}{
		{"/stats/summary", "root", 200},
		{"/exec/ns/p/c", "root", 500},
		{"/stats/summary", "carol", 401},
	} {
		if got := status("GET", tc.path, tc.token); got != tc.want {
			t.Errorf("API server away, %s by %s: got %d, want %d", tc.path, tc.token, got, tc.want)
		}
	}
}

func TestSecurityA1NobodyToAskIsAnError(t *testing.T) {
	var typedNil *kubernetes.Clientset
	boom := errors.New("boom")
	fails := func(*WebhookAuthConfig) error { return boom }
	if _, err := WebhookAuth(fake.NewClientset(), "n1", fails); !errors.Is(err, boom) {
		t.Errorf("error of an option: got %v", err)
	}
	for name, make := range map[string]func() (Auth, error){
		"nil client":       func() (Auth, error) { return WebhookAuth(nil, "n1") },
		"typed nil client": func() (Auth, error) { return WebhookAuth(typedNil, "n1") },
		"no name":          func() (Auth, error) { return WebhookAuth(fake.NewClientset(), "") },
		"nothing to ask": func() (Auth, error) {
			return WebhookAuth(fake.NewClientset(), "n1", func(cfg *WebhookAuthConfig) error {
				cfg.AuthnConfig.TokenAccessReviewClient = nil
				return nil
			})
		},
	} {
		if auth, err := make(); err == nil || auth != nil {
			t.Errorf("%s: got %v, %v; want an error", name, auth, err)
		}
	}
}

// TestWebhookAuthKeepsTheTokenOut: no log line and no answer contains a token.
func TestWebhookAuthKeepsTheTokenOut(t *testing.T) {
	const secret = "canary-token"
	api := newReviews(t)
	api.setDown()
	auth, err := WebhookAuth(api.client, "n1", once)
	if err != nil {
		t.Fatal(err)
	}
	lines := &lineLogger{}
	w := httptest.NewRecorder()
	req := request("GET", "/pods", secret)
	WithAuth(InstrumentAuth(auth), hello).ServeHTTP(w, req.WithContext(lines.into(context.Background())))
	if got := lines.text() + w.Body.String(); strings.Contains(got, secret) {
		t.Errorf("the token is in %q", got)
	}
	if w.Code != 401 || lines.text() == "" {
		t.Errorf("got %d and log %q, want 401 and a reason in the log", w.Code, lines.text())
	}
}
