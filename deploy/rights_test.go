// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtual-kubelet/virtual-kubelet/internal/rbac"
)

// breaches returns the rules of a role that allow too much.
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

// flat lists the allowed actions of the rules, one by one.
func flat(namespace string, rules []rbacv1.PolicyRule) (list []string) {
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					list = append(list, strings.Join([]string{namespace, group, resource, verb, strings.Join(r.ResourceNames, ",")}, "|"))
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

// TestTheRoleIsTheTable: the roles of the chart have exactly the rights in the table of features.
func TestTheRoleIsTheTable(t *testing.T) {
	for serving, features := range map[string][]rbac.Feature{
		"none of shared nodes": {rbac.PodTokens, rbac.TrustBundles, rbac.Claims, rbac.ManyNodes, rbac.SharedNodes},
		"selfSigned of nodes":  {rbac.PodTokens, rbac.TrustBundles, rbac.Claims, rbac.Serving, rbac.ManyNodes},

		"none":       {rbac.EndpointSlices, rbac.PodTokens, rbac.TrustBundles, rbac.Claims},
		"selfSigned": {rbac.PodTokens, rbac.TrustBundles, rbac.Claims, rbac.Serving},
		"request":    {rbac.PodTokens, rbac.TrustBundles, rbac.Claims, rbac.Serving, rbac.CertificateRequests},
	} {
		var got, want []string
		mode, _, many := strings.Cut(serving, " ")
		nodes, replicas := []string{"n1"}, 1
		if many {
			nodes = nil
		}
		if slices.Contains(features, rbac.SharedNodes) {
			replicas = 3
		}
		given := values{"nodeName": "n1", "serving": values{"mode": mode},
			"identity": values{"mode": "serviceAccount", "endpointSlices": slices.Contains(features, rbac.EndpointSlices)}}
		if many {
			given["nodes"], given["replicas"] = []any{"vk-[0-9]"}, replicas
		}
		for _, o := range objects(t, mustRender(t, "ns", with(given))) {
			if kind := o.GetKind(); kind == "Role" || kind == "ClusterRole" {
				role := &rbacv1.ClusterRole{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
					t.Fatal(err)
				}
				got = append(got, flat(o.GetNamespace(), role.Rules)...)
			}
		}
		for _, o := range rbac.Objects(rbac.Subject{Name: "virtual-kubelet", Namespace: "ns", Nodes: nodes}, features...) {
			switch role := o.(type) {
			case *rbacv1.ClusterRole:
				want = append(want, flat("", role.Rules)...)
			case *rbacv1.Role:
				want = append(want, flat(role.Namespace, role.Rules)...)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("serving %s: (- the table in internal/rbac, + the chart)\n%s", serving, diff)
		}
	}
}

// TestSecurityC4RolesHaveNoWildcard looks at every role and binding of the chart, in every mode, and of the plain manifests.
func TestSecurityC4RolesHaveNoWildcard(t *testing.T) {
	texts, files := map[string]string{}, 0
	for name, given := range modes {
		texts["the chart for "+name] = mustRender(t, "virtual-kubelet", given)
	}
	found, err := filepath.Glob(filepath.Join("manifests", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
		files++
	}
	if files < len(modes) {
		t.Errorf("there are %d manifests, want one for each of %d modes", files, len(modes))
	}
	for name, text := range texts {
		checkRoles(t, name, objects(t, text))
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

// checkRoles checks the roles among the objects, and checks that bindings refer to these roles only.
func checkRoles(t *testing.T, name string, list []*unstructured.Unstructured) {
	t.Helper()
	roles := map[string]bool{}
	for _, o := range list {
		if kind := o.GetKind(); kind == "Role" || kind == "ClusterRole" {
			roles[kind+" "+o.GetName()] = true
			role := &rbacv1.ClusterRole{} // a Role has the same rules
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
				t.Fatal(err)
			}
			for _, breach := range breaches(role.Rules) {
				t.Errorf("%s: %s %s: %s", name, kind, o.GetName(), breach)
			}
		}
	}
	bindings := 0
	for _, o := range list {
		if kind := o.GetKind(); kind == "RoleBinding" || kind == "ClusterRoleBinding" {
			bindings++
			binding := &rbacv1.ClusterRoleBinding{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, binding); err != nil {
				t.Fatal(err)
			}
			if role := binding.RoleRef.Kind + " " + binding.RoleRef.Name; !roles[role] {
				t.Errorf("%s: %s %s binds the %s, which is not among them", name, kind, o.GetName(), role)
			}
			own := func(s rbacv1.Subject) bool {
				return s.Kind == rbacv1.UserKind && strings.HasPrefix(s.Name, "system:node:")
			}
			if strings.Contains(name, "provisioner") { // nodes with their own identity need it too
				binding.Subjects = slices.DeleteFunc(binding.Subjects, own)
			}
			if len(binding.Subjects) != 1 || binding.Subjects[0].Kind != "ServiceAccount" || binding.Subjects[0].Namespace != "virtual-kubelet" {
				t.Errorf("%s: %s %s: got subjects %v, want the ServiceAccount", name, kind, o.GetName(), binding.Subjects)
			}
		}
	}
	if strings.Contains(name, "node-") && len(roles)+bindings > 0 {
		t.Errorf("%s: a node with its own identity needs no roles: %v", name, roles)
	}
	if strings.Contains(name, serviceAccount) && (len(roles) != 2 || bindings != 2) {
		t.Errorf("%s: got %d roles and %d bindings, want two of each", name, len(roles), bindings)
	}
}
