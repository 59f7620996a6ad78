// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

// readmeRole is a role that the README tells to paste.
func readmeRole(t *testing.T, name string) *rbacv1.ClusterRole {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		role := &rbacv1.ClusterRole{}
		if strings.Contains(block, "name: "+name+"\n") && yaml.UnmarshalStrict([]byte(block), role) == nil {
			return role
		}
	}
	t.Fatalf("README.md has no ClusterRole %s", name)
	return nil
}

// limited is an access with the rules of a role and no others.
func limited(t *testing.T, api *testapi.API, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	user := api.NodeName(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	if _, err := api.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := api.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	access := rest.CopyConfig(api.Config)
	access.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return access
}

// asTheReadmeSays has agents ask with the rights of the README and no others, here and in the targets.
func (s *source) asTheReadmeSays() {
	s.Helper()
	s.access = limited(s.T, s.api, readmeRole(s.T, "virtual-kubelet-admiralty-agent").Rules)
	var reads []rbacv1.PolicyRule
	for _, rule := range readmeRole(s.T, "virtual-kubelet-admiralty").Rules {
		if r := rule.Resources[0]; rule.APIGroups[0] == "" && (r == "pods" || r == "nodes") {
			rule.Verbs = []string{"list", "watch"}
			reads = append(reads, rule)
		}
	}
	for i := range s.config.Targets {
		t := &s.config.Targets[i]
		t.access = limited(s.T, s.targets[t.Node], reads)
	}
}
