// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// NodeRequestAttr describes requests to a node's server in the terms of the API server: as verbs on subresources
// of the Node object.
type NodeRequestAttr struct {
	// NodeName is the name of the Node object.
	NodeName string
}

// GetRequestAttributes returns the one permission that always suffices for req. For paths below /stats, /metrics, /logs, /checkpoint,
// /statusz and /flagz it is on nodes/stats, nodes/metrics, nodes/log, nodes/checkpoint, nodes/statusz or nodes/configz. For everything else
// it is on nodes/proxy. Alternatives also returns the other sufficient permissions.
//
// The verb follows from the HTTP method, but is always create for commands and streams. A WebSocket begins with
// a GET, and a user with read permissions must not run commands. A method other than POST, GET, PUT, PATCH and
// DELETE has no verb; only a rule for all verbs allows it.
//
// On the server of a Fleet, the permission is on the node of the request, regardless of NodeName, or on all nodes if that node is unknown.
func (a NodeRequestAttr) GetRequestAttributes(who user.Info, req *http.Request) authorizer.Attributes {
	all := a.Alternatives(who, req)
	return all[len(all)-1]
}

// Alternatives returns the permissions for req in the order in which a kubelet asks; each of them is enough. For
// paths below /pods, /runningpods, /healthz and /configz, the permission on nodes/pods, nodes/healthz or
// nodes/configz comes before the permission on nodes/proxy. The list has at least one permission.
func (a NodeRequestAttr) Alternatives(who user.Info, req *http.Request) []authorizer.Attributes {
	attrs := authorizer.AttributesRecord{
		User:            who,
		Verb:            verbFor(req),
		APIVersion:      "v1",
		Resource:        "nodes",
		Name:            a.NodeName,
		ResourceRequest: true,
		Path:            req.URL.Path,
	}
	if asked, ok := askedOf(req.Context()); ok {
		attrs.Name = string(asked)
	}
	var all []authorizer.Attributes
	for _, subresource := range subresourcesFor(req.URL.Path) {
		attrs.Subresource = subresource
		all = append(all, attrs)
	}
	return all
}

var verbs = map[string]string{
	http.MethodPost:   "create",
	http.MethodGet:    "get",
	http.MethodPut:    "update",
	http.MethodPatch:  "patch",
	http.MethodDelete: "delete",
}

func verbFor(req *http.Request) string {
	if isStream(req) {
		return "create"
	}
	return verbs[req.Method]
}

// proxy is the subresource that permits every request.
var proxy = []string{"proxy"}

// subresources has the subresources of a kubelet (KEP-2862), by the first path segment.
var subresources = map[string][]string{
	"pods":          {"pods", "proxy"},
	"runningpods":   {"pods", "proxy"},
	"allocatedPods": {"pods", "proxy"},
	"healthz":       {"healthz", "proxy"},
	"readyz":        {"healthz", "proxy"}, // a kubelet has only healthz; readyz and livez reveal no more
	"livez":         {"healthz", "proxy"},
	"configz":       {"configz", "proxy"},
	"flagz":         {"configz"},
	"statusz":       {"statusz"},
	"stats":         {"stats"},
	"metrics":       {"metrics"},
	"logs":          {"log"},
	"checkpoint":    {"checkpoint"},
}

// subresourcesFor grants a lesser subresource only to a path in its plain form. A path that a later router might read differently, such as
// /stats/../exec, needs the permission for everything.
func subresourcesFor(path string) []string {
	if !isPlain(path) {
		return proxy
	}
	if found, ok := subresources[firstPart(path)]; ok {
		return found
	}
	return proxy
}
