// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// WithAuth returns a handler that asks auth about each request before h sees it: 401 for a request without a known user, 403 for a request
// that is not allowed, 500 when the authorization itself has failed. It panics if auth is nil, so that a missing error check cannot disable
// authentication. A nil h answers 404.
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

// NoAuth returns an Auth that lets every caller do everything: run commands in pods and read their logs. Use it only if something else
// protects the server.
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
