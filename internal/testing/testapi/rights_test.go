// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestRightsCountAtOnce: new rights are in force when Allow returns, although the authorizer needs a moment to
// see them. The test sends the first request many times.
func TestRightsCountAtOnce(t *testing.T) {
	api := Start(t)
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}}
	inner, other := api.Namespace(t), api.Namespace(t)
	for range 30 {
		for _, namespace := range []string{inner, ""} {
			user := api.NodeName(t)
			client := kubernetes.NewForConfigOrDie(api.As(user)).CoreV1()
			api.Allow(t, user, namespace, rules)
			if _, err := client.Pods(inner).List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Fatalf("the first request of a user with rights in %q: %v", namespace, err)
			}
			if _, err := client.Pods(other).List(t.Context(), metav1.ListOptions{}); apierrors.IsForbidden(err) == (namespace == "") {
				t.Errorf("a user with rights in %q asks for the pods of another namespace: got %v", namespace, err)
			}
			if _, err := client.Secrets(inner).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("a user without a right to list Secrets: got %v, want a refusal", err)
			}
		}
	}
}
