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

// PermissionsGetter is an ability of an Auth, found by assertion: to ask about more than
// one permission for a request. Without it a request needs the one of GetRequestAttributes.
// The Auth of WebhookAuth has it, and InstrumentAuth hands it on.
type PermissionsGetter interface {
	// GetRequestPermissions returns what a request needs: one permission of each list. An
	// empty list cannot be met, so it refuses the request; and so do no lists at all.
	GetRequestPermissions(who user.Info, req *http.Request) [][]authorizer.Attributes
}

// permissionsFor returns what auth wants to be asked about req.
func permissionsFor(auth Auth, who user.Info, req *http.Request) [][]authorizer.Attributes {
	if getter, ok := auth.(PermissionsGetter); ok {
		return getter.GetRequestPermissions(who, req)
	}
	return [][]authorizer.Attributes{{auth.GetRequestAttributes(who, req)}}
}

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

// authorize returns nil if who has all permissions that req needs.
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

// authorizeOne returns nil if one of the alternatives is allowed. It goes on after an error: what is
// allowed for certain, from a cache for example, stays so while nothing else can be asked.
func authorizeOne(ctx context.Context, auth Auth, alternatives []authorizer.Attributes) *refusal {
	var failed error
	var lacks []func() // said only if there is none that allows it
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

// podPermissions returns the permission in the pod's namespace that the API server asks for before it
// sends req to a node; needed is false for a request that is about no pod. A stream whose
// pod cannot be told needs one that nobody has.
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
