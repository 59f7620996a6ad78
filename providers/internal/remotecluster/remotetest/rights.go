// SPDX-License-Identifier: Apache-2.0

package remotetest

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

// ReadmeRole is the ClusterRole of that name that README.md in this folder tells to paste.
func ReadmeRole(t *testing.T, name string) *rbacv1.ClusterRole {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(block, "kind: ClusterRole\n") || !strings.Contains(block, "name: "+name+"\n") && !strings.Contains(block, "name: "+name+"}") {
			continue
		}
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict([]byte(block), role); err != nil {
			t.Fatal(err)
		}
		return role
	}
	t.Fatalf("README.md has no ClusterRole %s", name)
	return nil
}

// WithRole is the access of a user of that name who has the role and no other rights. The API server knows of them when it returns.
func WithRole(t *testing.T, api *testapi.API, user string, role *rbacv1.ClusterRole) *rest.Config {
	t.Helper()
	role.Name = user
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := api.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	untilAllowed(t, api, user, &role.Rules[0])
	access := rest.CopyConfig(api.Config)
	access.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return access
}

// untilAllowed waits until the authorizer, which watches roles and bindings, has seen those of the user.
func untilAllowed(t *testing.T, api *testapi.API, user string, rule *rbacv1.PolicyRule) {
	t.Helper()
	resource, sub, _ := strings.Cut(rule.Resources[0], "/")
	question := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: sub}}}
	if len(rule.ResourceNames) > 0 {
		question.Spec.ResourceAttributes.Name = rule.ResourceNames[0]
	}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		answer, err := api.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, question, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	})
	if err != nil {
		t.Fatalf("the rights of %s do not count: %v", user, err)
	}
}
