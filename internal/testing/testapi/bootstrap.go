// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"context"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// AllowBootstrap makes a bootstrap token and allows it and nodes to get client certificates, as kubeadm does.
// The API server needs --enable-bootstrap-token-auth. The rights are effective when AllowBootstrap returns.
func (a *API) AllowBootstrap(t *testing.T, tokenID, tokenSecret string) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + tokenID}, Type: "bootstrap.kubernetes.io/token",
		StringData: map[string]string{"token-id": tokenID, "token-secret": tokenSecret, "usage-bootstrap-authentication": "true"},
	}
	if _, err := a.Client.CoreV1().Secrets(metav1.NamespaceSystem).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for role, to := range map[string]struct{ group, subresource string }{
		"system:node-bootstrapper": {"system:bootstrappers", ""},
		"system:certificates.k8s.io:certificatesigningrequests:nodeclient":     {"system:bootstrappers", "nodeclient"},
		"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": {"system:nodes", "selfnodeclient"},
	} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "test:" + role[strings.LastIndex(role, ":")+1:]},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: to.group}},
		}
		if _, err := a.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		a.awaitAllowed(t, authorizationv1.SubjectAccessReviewSpec{Groups: []string{to.group}, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "create", Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Subresource: to.subresource}})
	}
	a.awaitToken(t, tokenID+"."+tokenSecret)
}

// awaitToken waits until the API server knows a token. The API server watches the token's Secret.
func (a *API) awaitToken(t testing.TB, token string) {
	t.Helper()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, rightsTimeout, true, func(ctx context.Context) (bool, error) {
		answer, err := a.Client.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Authenticated, err
	})
	if err != nil {
		t.Fatalf("the API server does not know the bootstrap token: %v", err)
	}
}
