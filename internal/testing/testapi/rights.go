// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"context"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

const rightsTimeout = time.Minute

// As returns the access of a user with the rights of every authenticated user, and the rights bound to the name.
func (a *API) As(user string) *rest.Config {
	access := rest.CopyConfig(a.Config)
	access.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return access
}

// Allow gives a user rights in a namespace, or in the whole cluster if the namespace is "". The rights are
// effective when Allow returns, see [API.AwaitRights].
func (a *API) Allow(t testing.TB, user, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: user}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	client, options := a.Client.RbacV1(), metav1.CreateOptions{}
	var err error
	if namespace == "" {
		_, err = client.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, options)
	} else {
		ref.Kind = "Role"
		_, err = client.Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, options)
	}
	if err != nil {
		t.Fatalf("create the role of %s: %v", user, err)
	}
	if namespace == "" {
		_, err = client.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, options)
	} else {
		_, err = client.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, options)
	}
	if err != nil {
		t.Fatalf("bind the role of %s: %v", user, err)
	}
	a.AwaitRights(t, user, namespace, rules)
}

// AwaitRights waits until a user has the rights of one role. The authorizer watches roles and their bindings, so
// it may still refuse a request just after their creation.
func (a *API) AwaitRights(t testing.TB, user, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	rule := rules[0] // one rule is enough: the API server sees the rules of a role at the same time
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	of := &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource}
	if len(rule.ResourceNames) > 0 {
		of.Name = rule.ResourceNames[0]
	}
	a.awaitAllowed(t, authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: of})
}

// awaitAllowed waits until the answer to a question about rights is yes.
func (a *API) awaitAllowed(t testing.TB, question authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, rightsTimeout, true, func(ctx context.Context) (bool, error) {
		answer, err := a.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: question}, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	})
	if err != nil {
		t.Fatalf("the rights of %s%v do not count: %v", question.User, question.Groups, err)
	}
}
