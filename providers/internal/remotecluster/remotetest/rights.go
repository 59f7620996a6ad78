// SPDX-License-Identifier: Apache-2.0

package remotetest

import (
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

// ReadmeRules returns the rules of the named ClusterRole in a README.
func ReadmeRules(t *testing.T, readme, name string) []rbacv1.PolicyRule {
	t.Helper()
	text, err := os.ReadFile(readme)
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
		return role.Rules
	}
	t.Fatalf("%s has no ClusterRole %s", readme, name)
	return nil
}

// AsTheReadmeSays returns the access of the named user with the rules of a ClusterRole in README.md, and no
// others.
func AsTheReadmeSays(t *testing.T, api *testapi.API, user, role string) *rest.Config {
	t.Helper()
	api.Allow(t, user, "", ReadmeRules(t, "README.md", role))
	return api.As(user)
}
