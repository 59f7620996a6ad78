// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// Auth decides who sends a request and whether they may. Implementations must
// be safe for concurrent use.
//
// It asks for the plain Authorize only, not for the conditional decisions of
// newer authorizers, so that implementations in the field keep compiling. See PermissionsGetter
// for requests that more than one permission allows.
type Auth interface {
	authenticator.Request
	authorizer.RequestAttributesGetter
	Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error)
}

// WithAuth returns a handler that asks auth about each request before h sees
// it: 401 for a request without a known user, 403 for one that is not
// allowed, 500 when the authorization itself has failed. It panics when auth is
// nil, because a server must not lose its lock to a forgotten error check. A nil h
// answers 404.
//
// NewNode recognises the handler and adds no authentication to it.
func WithAuth(auth Auth, h http.Handler) http.Handler {
	if auth == nil {
		panic("nodeutil: WithAuth: auth is nil; use WebhookAuth, or NoAuth to serve everybody")
	}
	if h == nil {
		h = http.HandlerFunc(api.NotFound)
	}
	return &authHandler{auth: auth, next: h}
}

// authHandler is a named type so that NewNode can recognise it.
type authHandler struct {
	auth Auth
	next http.Handler
}

func (h *authHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	who, refused := decide(h.auth, req)
	if refused != nil {
		refused.write(w, req)
		return
	}
	h.next.ServeHTTP(w, req.WithContext(withCaller(req.Context(), who)))
}

// refusal is the answer to a request that must not pass.
type refusal struct {
	status int
	text   string
}

// write answers req. It does not wait for the body, of which net/http would read
// a part before it answers: without credentials, anybody could hold a
// connection for ever by promising a body.
func (r *refusal) write(w http.ResponseWriter, req *http.Request) {
	if req.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // a wrapper may hide it
	}
	http.Error(w, r.text, r.status)
}

var (
	unauthorized = &refusal{http.StatusUnauthorized, "Unauthorized"}
	forbidden    = &refusal{http.StatusForbidden, "Forbidden"}
	undecided    = &refusal{http.StatusInternalServerError, "Authorization error"}
)

// decide says who sends a request, and lets authorize say whether they may: who cannot be told, or lacks an
// explicit Allow, does not pass. The reasons go to the log, not to the caller.
func decide(auth Auth, req *http.Request) (user.Info, *refusal) {
	ctx := req.Context()
	resp, ok, err := auth.AuthenticateRequest(req)
	if err != nil {
		log.G(ctx).WithError(err).Debug("Request is not authenticated")
		return nil, unauthorized
	}
	if !ok || resp == nil || resp.User == nil {
		return nil, unauthorized
	}

	if refused := authorize(auth, resp.User, req); refused != nil {
		return nil, refused
	}
	return resp.User, nil
}

type callerKey struct{}

// withCaller marks a request as let through by an Auth, on behalf of who.
func withCaller(ctx context.Context, who user.Info) context.Context {
	ctx = api.WithCaller(ctx, api.Caller{Name: who.GetName(), Groups: who.GetGroups()})
	return context.WithValue(ctx, callerKey{}, who)
}

// callerOf returns the user whom an Auth has let through; ok is false for a
// request that none has seen.
func callerOf(ctx context.Context) (who user.Info, ok bool) {
	who, ok = ctx.Value(callerKey{}).(user.Info)
	return who, ok
}

// NoAuth returns an Auth that lets everybody do everything: run commands in
// pods and read their logs. Use it only where something else guards the server.
func NoAuth() Auth { return noAuth{} }

type noAuth struct{}

func (noAuth) AuthenticateRequest(*http.Request) (*authenticator.Response, bool, error) {
	return &authenticator.Response{User: &user.DefaultInfo{
		Name:   user.Anonymous,
		Groups: []string{user.AllUnauthenticated},
	}}, true, nil
}

func (noAuth) GetRequestAttributes(who user.Info, req *http.Request) authorizer.Attributes {
	return NodeRequestAttr{}.GetRequestAttributes(who, req)
}

func (noAuth) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}
