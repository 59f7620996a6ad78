// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// Auth identifies the user of a request and decides whether the user may send it. Implementations must be safe
// for concurrent use.
//
// It has only the plain Authorize, without the conditional decisions of newer authorizers, so that existing implementations still compile.
// See PermissionsGetter for requests that more than one permission allows.
type Auth interface {
	authenticator.Request
	authorizer.RequestAttributesGetter
	Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error)
}

// refusal is the answer to a refused request.
type refusal struct {
	status int
	text   string
}

// write answers req. It does not wait for the body, although net/http would read a part of it before answering: otherwise any client
// without credentials could hold a connection for ever by announcing a body.
func (r *refusal) write(w http.ResponseWriter, req *http.Request) {
	if req.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // a wrapper of the ResponseWriter may lack the deadline methods
	}
	http.Error(w, r.text, r.status)
}

var (
	unauthorized = &refusal{http.StatusUnauthorized, "Unauthorized"}
	forbidden    = &refusal{http.StatusForbidden, "Forbidden"}
	undecided    = &refusal{http.StatusInternalServerError, "Authorization error"}
)

type callerKey struct{}

// withCaller returns a context that marks a request as allowed by an Auth for the user.
func withCaller(ctx context.Context, who user.Info) context.Context {
	ctx = api.WithCaller(ctx, api.Caller{Name: who.GetName(), Groups: who.GetGroups()})
	return context.WithValue(ctx, callerKey{}, who)
}

// callerOf returns the user allowed by an Auth; ok is false if no Auth has allowed the request.
func callerOf(ctx context.Context) (who user.Info, ok bool) {
	who, ok = ctx.Value(callerKey{}).(user.Info)
	return who, ok
}
