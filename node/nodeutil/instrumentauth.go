// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/virtual-kubelet/virtual-kubelet/trace"
)

// InstrumentAuth returns an Auth that works like auth and records a span for each authentication and authorization. Spans carry user names
// and decisions, never credentials. It returns nil for a nil auth, so that WithAuth panics.
func InstrumentAuth(auth Auth) Auth {
	if auth == nil {
		return nil
	}
	return instrumentedAuth{auth}
}

type instrumentedAuth struct{ auth Auth }

func (a instrumentedAuth) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	ctx, span := trace.StartSpan(req.Context(), "AuthenticateRequest")
	defer span.End()

	resp, ok, err := a.auth.AuthenticateRequest(req.WithContext(ctx))
	span.SetStatus(err)
	span.WithField(ctx, "authenticated", ok)
	return resp, ok, err
}

func (a instrumentedAuth) GetRequestAttributes(who user.Info, req *http.Request) authorizer.Attributes {
	return a.auth.GetRequestAttributes(who, req)
}

// GetRequestPermissions implements PermissionsGetter.
func (a instrumentedAuth) GetRequestPermissions(who user.Info, req *http.Request) [][]authorizer.Attributes {
	return permissionsFor(a.auth, who, req)
}

func (a instrumentedAuth) Authorize(ctx context.Context, attrs authorizer.Attributes) (authorizer.Decision, string, error) {
	ctx, span := trace.StartSpan(ctx, "Authorize")
	defer span.End()
	ctx = span.WithFields(ctx, authFields(attrs))

	decision, reason, err := a.auth.Authorize(ctx, attrs)
	span.SetStatus(err)
	span.WithField(ctx, "decision", decision.String())
	return decision, reason, err
}
