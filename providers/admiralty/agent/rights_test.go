// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

// limited returns a client configuration with exactly the permissions of rules.
func limited(t *testing.T, api *testapi.API, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	user := api.NodeName(t)
	api.Allow(t, user, "", rules)
	return api.As(user)
}

// asTheReadmeSays restricts agents to the rights of the README, here and in the targets.
func (s *source) asTheReadmeSays() {
	s.Helper()
	const readme = "../README.md"
	s.access = limited(s.T, s.api, remotetest.ReadmeRules(s.T, readme, "virtual-kubelet-admiralty-agent"))
	var reads []rbacv1.PolicyRule
	for _, rule := range remotetest.ReadmeRules(s.T, readme, "virtual-kubelet-admiralty") {
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
