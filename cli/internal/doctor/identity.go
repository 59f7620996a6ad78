// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	nodeUser   = "system:node:"
	nodesGroup = "system:nodes"
)

// checkIdentity checks that the credentials belong to the node, by the identity that the API server reports.
func checkIdentity(ctx context.Context, e *exam) {
	if e.bootstrap {
		e.skip(onlyBootstrap)
		return
	}
	review, err := e.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		cause, fix := explain(err)
		e.found(fix, "the API server %s", cause)
		return
	case apierrors.IsNotFound(err):
		e.skip("this API server does not tell who asks")
		return
	case err != nil:
		e.unknown(fmt.Errorf("ask the API server who we are: %w", err))
		return
	}
	e.user = review.Status.UserInfo.Username
	groups := review.Status.UserInfo.Groups
	of, isNode := strings.CutPrefix(e.user, nodeUser)
	switch {
	case e.user == "system:anonymous":
		e.found("put a client certificate or a token into the kubeconfig", "the API server takes us for system:anonymous: the kubeconfig has no credentials that it knows")
	case isNode && of != e.NodeName:
		problem, fix := OtherNode(of, e.NodeName)
		e.found(fix, "%s", problem)
	case isNode && !slices.Contains(groups, nodesGroup):
		e.found("issue the certificate with the organization "+nodesGroup,
			"%s is not in the group %s, without which the Node authorizer does not know it", e.user, nodesGroup)
	}
}

// OtherNode returns the problem that the credentials belong to another node, and the fix.
func OtherNode(of, name string) (problem, fix string) {
	return fmt.Sprintf("the credentials belong to node %s, and this node is %s: a node may write only its own objects", of, name),
		fmt.Sprintf("set --nodename %s, or use the credentials of %s%s", of, nodeUser, name)
}

// NodeOf returns the node of a client certificate, or "" if the certificate is not for a node.
func NodeOf(c *x509.Certificate) string {
	of, _ := strings.CutPrefix(c.Subject.CommonName, nodeUser)
	if of == c.Subject.CommonName {
		return ""
	}
	return of
}

// isNode reports whether the identity is a node with permissions from the Node authorizer.
func (e *exam) isNode() bool { return strings.HasPrefix(e.user, nodeUser) }
