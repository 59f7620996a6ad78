// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// breaches returns what is too much in a role.
func breaches(rules []rbacv1.PolicyRule) (list []string) {
	for _, r := range rules {
		for _, words := range [][]string{r.APIGroups, r.Resources, r.Verbs, r.ResourceNames} {
			if slices.Contains(words, "*") {
				list = append(list, "a wildcard in "+r.String())
			}
		}
		for _, verb := range []string{"escalate", "bind", "impersonate"} {
			if slices.Contains(r.Verbs, verb) {
				list = append(list, verb+" in "+r.String())
			}
		}
		if len(r.NonResourceURLs) > 0 {
			list = append(list, "paths beside resources in "+r.String())
		}
		if slices.Contains(r.Resources, "secrets") && !slices.Equal(r.Verbs, []string{"get"}) {
			list = append(list, "more than get of secrets in "+r.String())
		}
	}
	return list
}

// TestSecurityC4RolesHaveNoWildcard looks at every role and binding of the chart.
func TestSecurityC4RolesHaveNoWildcard(t *testing.T) {
	for name, given := range modes {
		seen := 0
		for _, o := range objects(t, mustRender(t, "ns", given)) {
			switch o.GetKind() {
			case "Role", "ClusterRole":
				seen++
				role := &rbacv1.ClusterRole{} // a Role has the same rules
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
					t.Fatal(err)
				}
				for _, breach := range breaches(role.Rules) {
					t.Errorf("%s: %s %s: %s", name, o.GetKind(), o.GetName(), breach)
				}
			case "RoleBinding", "ClusterRoleBinding":
				binding := &rbacv1.ClusterRoleBinding{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, binding); err != nil {
					t.Fatal(err)
				}
				if binding.RoleRef.Name != "ns:virtual-kubelet" {
					t.Errorf("%s: %s %s binds the role %s, which is not in the chart", name, o.GetKind(), o.GetName(), binding.RoleRef.Name)
				}
				if len(binding.Subjects) != 1 || binding.Subjects[0].Kind != "ServiceAccount" || binding.Subjects[0].Namespace != "ns" {
					t.Errorf("%s: %s %s: got subjects %v, want the ServiceAccount", name, o.GetKind(), o.GetName(), binding.Subjects)
				}
			}
		}
		if want := map[string]int{nodeIdentity: 0, serviceAccount: 2}[name]; seen != want {
			t.Errorf("%s: got %d roles, want %d", name, seen, want)
		}
	}
	for _, bad := range []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}}, {Resources: []string{"*"}}, {Verbs: []string{"*"}}, {Verbs: []string{"bind"}},
		{NonResourceURLs: []string{"/metrics"}}, {Resources: []string{"secrets"}, Verbs: []string{"get", "list"}},
	} {
		if len(breaches([]rbacv1.PolicyRule{bad})) == 0 {
			t.Errorf("%s is not found", bad.String())
		}
	}
}
