// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// PermissionsGetter is an optional ability of an Auth, found by type assertion: it requires more than one permission for a request. Without
// it, a request needs only the permission of GetRequestAttributes. The Auth of WebhookAuth has the ability, and InstrumentAuth passes it
// on.
type PermissionsGetter interface {
	// GetRequestPermissions returns lists of permissions; a request needs one permission of each list. An empty list refuses the request,
	// because no permission can satisfy it. Without any list the request is refused too.
	GetRequestPermissions(who user.Info, req *http.Request) [][]authorizer.Attributes
}

// permissionsFor returns the permissions that auth must grant for req.
func permissionsFor(auth Auth, who user.Info, req *http.Request) [][]authorizer.Attributes {
	if getter, ok := auth.(PermissionsGetter); ok {
		return getter.GetRequestPermissions(who, req)
	}
	return [][]authorizer.Attributes{{auth.GetRequestAttributes(who, req)}}
}

// decide identifies the user of a request, and calls authorize. A request with an unknown user, or without an explicit Allow, does not
// pass. The reasons go to the log, not to the caller.
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

// authorize returns nil if the user has all permissions for req.
func authorize(auth Auth, who user.Info, req *http.Request) *refusal {
	needed := permissionsFor(auth, who, req)
	if len(needed) == 0 {
		needed = [][]authorizer.Attributes{nil}
	}
	for _, alternatives := range needed {
		if refused := authorizeOne(req.Context(), auth, alternatives); refused != nil {
			return refused
		}
	}
	return nil
}

// authorizeOne returns nil if one of the alternatives is allowed. It goes on after an error: a later alternative may be allowed, for
// example from a cache, while the API server does not answer.
func authorizeOne(ctx context.Context, auth Auth, alternatives []authorizer.Attributes) *refusal {
	var failed error
	var lacks []func() // logged only if no alternative is allowed
	for _, attrs := range alternatives {
		decision, reason, err := auth.Authorize(ctx, attrs)
		if err == nil && decision == authorizer.DecisionAllow {
			return nil
		}
		failed = errors.Join(failed, err)
		lacks = append(lacks, func() {
			log.G(ctx).WithFields(authFields(attrs)).WithField("reason", reason).Info("Request lacks a permission")
		})
	}
	for _, say := range lacks {
		say()
	}
	if failed != nil {
		log.G(ctx).WithError(failed).Warn("Request cannot be authorized")
		return undecided
	}
	return forbidden
}

// podPermissions returns the permission in the pod's namespace that the API server checks before it forwards req to a node. needed is false
// for a request without a pod. A stream with an unknown pod needs a permission that no user has.
func podPermissions(who user.Info, req *http.Request) (permissions []authorizer.Attributes, needed bool) {
	namespace, name, ok := podIn(req.URL.Path)
	if !ok || !isPlain(req.URL.Path) {
		return nil, isStream(req)
	}
	attrs := authorizer.AttributesRecord{
		User: who, Verb: "create", Namespace: namespace, APIVersion: "v1", Resource: "pods", Name: name,
		Subresource: podSubresources[firstPart(req.URL.Path)], ResourceRequest: true, Path: req.URL.Path,
	}
	if attrs.Subresource == "log" {
		attrs.Verb = "get"
	}
	return []authorizer.Attributes{attrs}, true
}

func authFields(attrs authorizer.Attributes) log.Fields {
	f := log.Fields{
		"verb":        attrs.GetVerb(),
		"resource":    attrs.GetResource(),
		"subresource": attrs.GetSubresource(),
		"name":        attrs.GetName(),
	}
	if namespace := attrs.GetNamespace(); namespace != "" {
		f["namespace"] = namespace
	}
	if who := attrs.GetUser(); who != nil {
		f["user"] = who.GetName()
	}
	return f
}
