// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// right is something that the node does.
type right struct {
	verbs                        []string
	group, resource, subresource string
	namespace                    string
	named                        bool // only the object with the name of the node
	selected                     bool // only pods of the node
	without                      string
}

// rights are those of a node that serves without webhook authentication.
var rights = []right{
	{verbs: []string{"create"}, resource: "nodes", without: "the node cannot be registered"},
	{verbs: []string{"get", "patch"}, resource: "nodes", named: true, without: "the node cannot be kept up to date"},
	{verbs: []string{"patch"}, resource: "nodes", subresource: "status", named: true, without: "the node never becomes Ready"},
	{verbs: []string{"list", "watch"}, resource: "pods", selected: true, without: "the node does not learn of its pods"},
	{verbs: []string{"delete"}, resource: "pods", without: "deleted pods stay Terminating"},
	{verbs: []string{"patch"}, resource: "pods", subresource: "status", without: "pods show no status"},
	{verbs: []string{"list", "watch"}, resource: "services", without: "pods get no service variables"},
	{verbs: []string{"create"}, resource: "events", without: "pods have no events"},
	{verbs: []string{"create"}, group: "coordination.k8s.io", resource: "leases", namespace: "kube-node-lease", without: "the node has no heartbeat"},
	{verbs: []string{"get", "update"}, group: "coordination.k8s.io", resource: "leases", namespace: "kube-node-lease", named: true, without: "the node has no heartbeat"},
}

// sourceRights are what a ServiceAccount needs beside them. The Node authorizer allows a node what
// its pods name, one by one, so there it cannot be asked for in general.
var sourceRights = []right{
	{verbs: []string{"get"}, resource: "configmaps", without: "pods that refer to ConfigMaps do not start"},
	{verbs: []string{"get"}, resource: "secrets", without: "pods that refer to Secrets do not start"},
}

func (r right) String() string {
	text := r.resource
	if r.subresource != "" {
		text += "/" + r.subresource
	}
	if r.group != "" {
		text += " (" + r.group + ")"
	}
	if r.namespace != "" {
		text += " in " + r.namespace
	}
	return text
}

const fixRole = "bind the identity to the ClusterRole of deploy/, or use the identity of a node (system:node:NAME, group system:nodes), which needs no role"

func checkRights(ctx context.Context, e *exam) {
	if e.noNames {
		e.skip("the node has no valid name")
		return
	}
	all := rights
	if !e.isNode() {
		all = append(all[:len(all):len(all)], sourceRights...)
	}
	for _, r := range all {
		missing, err := e.missing(ctx, r)
		if err != nil {
			e.unknown(err)
			return
		}
		if len(missing) > 0 {
			e.found(fixRole, "%s may not %s %s, so %s", e.who(), strings.Join(missing, ", "), r, r.without)
		}
	}
}

// checkReviews looks whether the API server may be asked about callers of the kubelet API.
func checkReviews(ctx context.Context, e *exam) {
	switch {
	case !e.Serve:
		e.skip("the kubelet API is not served")
		return
	case e.NoAuthentication:
		e.warn("leave --dangerously-serve-kubelet-api-without-authentication away", "everybody who reaches the port runs commands in the pods of the node")
		return
	}
	for _, r := range []right{
		{verbs: []string{"create"}, group: "authentication.k8s.io", resource: "tokenreviews", without: "callers with a token, such as Prometheus and metrics-server, get 401"},
		{verbs: []string{"create"}, group: "authorization.k8s.io", resource: "subjectaccessreviews", without: "kubectl logs and exec get 500"},
	} {
		missing, err := e.missing(ctx, r)
		if err != nil {
			e.unknown(err)
			return
		}
		if len(missing) > 0 {
			e.found("bind the identity to the ClusterRole system:auth-delegator, or to that of deploy/", "%s may not %s %s, so %s", e.who(), strings.Join(missing, ", "), r, r.without)
		}
	}
}

// missing returns the verbs that are not allowed.
func (e *exam) missing(ctx context.Context, r right) (verbs []string, err error) {
	for _, verb := range r.verbs {
		asked := &authorizationv1.ResourceAttributes{Verb: verb, Group: r.group, Resource: r.resource, Subresource: r.subresource, Namespace: r.namespace}
		if r.named {
			asked.Name = e.NodeName
		}
		if r.selected {
			asked.FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
				{Key: "spec.nodeName", Operator: metav1.FieldSelectorOpIn, Values: []string{e.NodeName}},
			}}
		}
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: asked}}
		answer, err := e.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("ask whether we may %s %s: %w", verb, r, err)
		}
		if !answer.Status.Allowed {
			verbs = append(verbs, verb)
		}
	}
	return verbs, nil
}

// who is the name of the identity for people.
func (e *exam) who() string {
	if e.user == "" {
		return "this identity"
	}
	return e.user
}
