// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"net/http"
	"path"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// NodeRequestAttr describes requests to a node's server as the API server
// knows them: as verbs on subresources of the Node object.
type NodeRequestAttr struct {
	// NodeName is the name of the Node object.
	NodeName string
}

// GetRequestAttributes returns what an authorizer is to be asked about req:
// the verb that the HTTP method stands for, on nodes/stats, nodes/metrics or nodes/log for
// paths below /stats, /metrics and /logs, and on nodes/proxy for everything else. A method
// other than POST, GET, PUT, PATCH and DELETE has no verb, which only a rule
// for all verbs allows.
//
// On the server of a Fleet the node is the one that the request is for, whatever NodeName
// says; where that cannot be told, it is all nodes.
func (a NodeRequestAttr) GetRequestAttributes(who user.Info, req *http.Request) authorizer.Attributes {
	attrs := attributesFor(req)
	attrs.User = who
	attrs.Name = a.NodeName
	if asked, ok := askedOf(req.Context()); ok {
		attrs.Name = asked.name()
	}
	return attrs
}

var verbs = map[string]string{
	http.MethodPost:   "create",
	http.MethodGet:    "get",
	http.MethodPut:    "update",
	http.MethodPatch:  "patch",
	http.MethodDelete: "delete",
}

var subresources = map[string]string{
	"stats":   "stats",
	"metrics": "metrics",
	"logs":    "log",
}

// attributesFor is the one place that maps requests to permissions.
func attributesFor(req *http.Request) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		Verb:            verbs[req.Method],
		APIVersion:      "v1",
		Resource:        "nodes",
		Subresource:     subresourceFor(req.URL.Path),
		ResourceRequest: true,
		Path:            req.URL.Path,
	}
}

// subresourceFor grants a lesser subresource only to a path in its plain form.
// Whatever a router behind us might read another way, such as /stats/../exec, needs
// the permission for everything.
func subresourceFor(p string) string {
	plain := strings.TrimSuffix(p, "/")
	if !strings.HasPrefix(p, "/") || path.Clean(p) != plain {
		return "proxy"
	}
	first, _, _ := strings.Cut(plain[1:], "/")
	if sub, ok := subresources[first]; ok {
		return sub
	}
	return "proxy"
}
