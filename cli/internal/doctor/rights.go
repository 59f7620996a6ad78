// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/rbac"
)

const fixRole = "bind the identity to the ClusterRole of deploy/, or use the identity of a node (system:node:NAME, group system:nodes), which needs no role"

func checkRights(ctx context.Context, e *exam) {
	switch {
	case e.noNames:
		e.skip("the node has no valid name")
		return
	case e.bootstrap:
		e.skip(onlyBootstrap)
		return
	}
	var features []rbac.Feature
	if e.BootstrapKubeconfig != "" || e.RequestsCertificate {
		features = append(features, rbac.CertificateRequests)
	}
	if e.ManyNodes {
		features = append(features, rbac.ManyNodes)
	}
	if e.SharesNodes {
		features = append(features, rbac.SharedNodes)
	}
	e.need(ctx, fixRole, rbac.All(features...))
}

const onlyBootstrap = "the node has only the credentials to ask for its own with; run this again when it has those"

// checkReviews checks whether the node may send access reviews for callers of the kubelet API.
func checkReviews(ctx context.Context, e *exam) {
	switch {
	case !e.Serve:
		e.skip("the kubelet API is not served")
		return
	case e.NoAuthentication:
		e.warn("leave --dangerously-serve-kubelet-api-without-authentication away", "everybody who reaches the port runs commands in the pods of the node")
		return
	case e.bootstrap:
		e.skip(onlyBootstrap)
		return
	}
	serving := slices.DeleteFunc(rbac.All(rbac.Serving), func(r rbac.Right) bool { return r.Needs != rbac.Serving })
	e.need(ctx, "bind the identity to the ClusterRole system:auth-delegator, or to that of deploy/", serving)
}

// need reports each missing permission.
func (e *exam) need(ctx context.Context, fix string, all []rbac.Right) {
	for _, r := range all {
		if e.isNode() && (r.Resource == "configmaps" || r.Resource == "secrets") {
			continue // the Node authorizer allows only objects that a pod of the node names, so there is no general answer
		}
		var missing []string
		for _, review := range r.Reviews(e.NodeName) {
			asked := review.Spec.ResourceAttributes
			if r.Resource == "pods" && asked.Verb != "delete" { // a node may see its own pods only
				asked.FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
					{Key: "spec.nodeName", Operator: metav1.FieldSelectorOpIn, Values: []string{e.NodeName}},
				}}
			}
			answer, err := e.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &review, metav1.CreateOptions{})
			if err != nil {
				e.unknown(fmt.Errorf("ask whether we may %s %s: %w", asked.Verb, r.Resource, err))
				return
			}
			if !answer.Status.Allowed {
				missing = append(missing, asked.Verb)
			}
		}
		if len(missing) > 0 {
			e.found(fix, "%s may not %s %s, which is there so that %s", e.who(), strings.Join(missing, ", "), place(r), r.Why)
		}
	}
}

// place describes the object of a permission.
func place(r rbac.Right) string {
	text := r.Resource
	if r.Group != "" {
		text += " (" + r.Group + ")"
	}
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// who returns the identity as text for users.
func (e *exam) who() string {
	if e.user == "" {
		return "this identity"
	}
	return e.user
}
