// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AllowBootstrap makes a bootstrap token and lets it and nodes have client certificates, as kubeadm does.
// The API server needs --enable-bootstrap-token-auth.
func (a *API) AllowBootstrap(t *testing.T, tokenID, tokenSecret string) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + tokenID}, Type: "bootstrap.kubernetes.io/token",
		StringData: map[string]string{"token-id": tokenID, "token-secret": tokenSecret, "usage-bootstrap-authentication": "true"},
	}
	if _, err := a.Client.CoreV1().Secrets(metav1.NamespaceSystem).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for role, group := range map[string]string{
		"system:node-bootstrapper": "system:bootstrappers",
		"system:certificates.k8s.io:certificatesigningrequests:nodeclient":     "system:bootstrappers",
		"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": "system:nodes",
	} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "test:" + role[strings.LastIndex(role, ":")+1:]},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
		}
		if _, err := a.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
