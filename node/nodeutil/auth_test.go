// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
)

// scriptedAuth returns the decisions in its fields, and counts its calls.
type scriptedAuth struct {
	NodeRequestAttr
	unknown  bool
	authnErr error
	decision authorizer.Decision
	authzErr error
	asked    int
}

func (a *scriptedAuth) AuthenticateRequest(*http.Request) (*authenticator.Response, bool, error) {
	a.asked++
	if a.unknown || a.authnErr != nil {
		return nil, false, a.authnErr
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: "alice"}}, true, nil
}

func (a *scriptedAuth) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return a.decision, "", a.authzErr
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })

func TestWithAuth(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name   string
		auth   Auth
		status int
		body   string
	}{
		{"allowed", &scriptedAuth{decision: authorizer.DecisionAllow}, 200, "hello"},
		{"everybody", NoAuth(), 200, "hello"},
		{"unknown", &scriptedAuth{unknown: true, decision: authorizer.DecisionAllow}, 401, "Unauthorized"},
		{"authentication fails", &scriptedAuth{authnErr: boom, decision: authorizer.DecisionAllow}, 401, "Unauthorized"},
		{"denied", &scriptedAuth{decision: authorizer.DecisionDeny}, 403, "Forbidden"},
		{"no opinion", &scriptedAuth{decision: authorizer.DecisionNoOpinion}, 403, "Forbidden"},
		{"authorization fails", &scriptedAuth{decision: authorizer.DecisionDeny, authzErr: boom}, 500, "Authorization error"},
		{"allowed with an error", &scriptedAuth{decision: authorizer.DecisionAllow, authzErr: boom}, 500, "Authorization error"},
	} {
		for _, auth := range []Auth{tc.auth, InstrumentAuth(tc.auth)} {
			w := get(WithAuth(auth, hello), "/pods")
			if got := strings.TrimSpace(w.Body.String()); w.Code != tc.status || got != tc.body {
				t.Errorf("%s: got %d %q, want %d %q", tc.name, w.Code, got, tc.status, tc.body)
			}
		}
	}
}

func TestWithAuthNil(t *testing.T) {
	if w := get(WithAuth(NoAuth(), nil), "/"); w.Code != http.StatusNotFound {
		t.Errorf("nil handler: got %d, want 404", w.Code)
	}
	defer func() {
		if recover() == nil {
			t.Error("WithAuth(nil, …) returned a handler, want a panic")
		}
	}()
	WithAuth(InstrumentAuth(nil), hello)
}

func TestWithAuthNamesTheCaller(t *testing.T) {
	var caller string
	h := WithAuth(&scriptedAuth{decision: authorizer.DecisionAllow}, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		if who, ok := callerOf(req.Context()); ok {
			caller = who.GetName()
		}
	}))
	get(h, "/")
	if caller != "alice" {
		t.Errorf("caller in the context: got %q, want alice", caller)
	}
}

// spanNames records the opened spans and their errors.
type spanNames struct {
	opened []string
	failed []string
}

func (s *spanNames) StartSpan(ctx context.Context, name string) (context.Context, trace.Span) {
	s.opened = append(s.opened, name)
	return ctx, &namedSpan{all: s, name: name}
}

type namedSpan struct {
	all  *spanNames
	name string
}

func (s *namedSpan) End() {}
func (s *namedSpan) SetStatus(err error) {
	if err != nil {
		s.all.failed = append(s.all.failed, s.name)
	}
}
func (s *namedSpan) Logger() log.Logger { return nil }
func (s *namedSpan) WithField(ctx context.Context, _ string, _ any) context.Context {
	return ctx
}
func (s *namedSpan) WithFields(ctx context.Context, _ log.Fields) context.Context { return ctx }

func TestInstrumentAuthOpensSpans(t *testing.T) {
	spans := &spanNames{}
	auth := InstrumentAuth(&scriptedAuth{decision: authorizer.DecisionDeny, authzErr: errors.New("boom")})
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	WithAuth(auth, hello).ServeHTTP(httptest.NewRecorder(), req.WithContext(trace.WithTracer(req.Context(), spans)))

	if got := strings.Join(spans.opened, " "); got != "AuthenticateRequest Authorize" {
		t.Errorf("spans: got %q", got)
	}
	if got := strings.Join(spans.failed, " "); got != "Authorize" {
		t.Errorf("failed spans: got %q", got)
	}
}
